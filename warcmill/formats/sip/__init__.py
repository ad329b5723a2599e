"""The parts of a SIP: METS, PREMIS and Dublin Core, ARKs, formats by PRONOM, and the tar around them. Pure."""
