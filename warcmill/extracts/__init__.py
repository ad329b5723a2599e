"""Extracts of stored WARCs: CDXJ lines, text, formats. Each is kept in the index root, and made once."""
