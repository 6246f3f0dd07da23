"""Tags and filters of the templates, a module for each subject."""
