"""An index without a changelog: the list of its projects and their pages, compared with what is known of them."""
