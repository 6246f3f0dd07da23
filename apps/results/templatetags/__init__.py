"""Tags and filters of the templates, by what they are about."""
