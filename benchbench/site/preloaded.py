"""The site, loaded by the process from which those that read uploads are forked (`benchbench.site.reading`)."""

import django

django.setup()
