"""What requests hold and what answers hold, field by field: the OpenAPI schema is made from these."""
