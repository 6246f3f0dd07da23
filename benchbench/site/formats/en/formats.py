"""ISO dates, and times with their zone.

Django's own formats of English take precedence over those in the settings, even without `USE_I18N`.
"""

DATE_FORMAT = SHORT_DATE_FORMAT = "Y-m-d"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "Y-m-d H:i T"
TIME_FORMAT = "H:i T"
