"""The executor `ray`: scores recorded trials on a Ray cluster that the user already has."""
