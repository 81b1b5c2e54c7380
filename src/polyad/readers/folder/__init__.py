"""Reading of files and folders: which files are read, and their documents."""
