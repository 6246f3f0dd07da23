"""Requests and answers, field by field. The OpenAPI schema is made from these."""
