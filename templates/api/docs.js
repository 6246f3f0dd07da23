{% autoescape off %}{% include "drf_spectacular/swagger_ui.js" %}{% endautoescape %}
