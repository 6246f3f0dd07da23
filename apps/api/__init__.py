"""The REST API: the use cases of BenchBench over HTTP. It parses, calls one use case, presents.

How to add an endpoint, by the example of datasets:

1. `serializers/<package>/<things>.py`: what is asked and what is told, field by field; the OpenAPI schema is made
   of nothing else.
   - A request: a `StrictSerializer` of `Text`, `Whole`, `Choice`, `ListOf` and the other fields of `apps/api/fields.py`
     (an unknown key, another type: 400, in the words of `apps.api.sentences`). Name it for what it is
     (`DatasetUpload`); its component is called `DatasetUploadRequest`.
   - An answer: a plain `Serializer` of every field that is told (`DatasetFacts`). A list: a `Page` with one field
     more, the rows (`DatasetPage`).
2. `resources/<package>/<things>.py`: one `Endpoint` for each address.
   - `model` and `acts` say which permission of the admin each method needs: `acts = {"GET": "view", "POST": "add"}`.
     A POST that starts or stops something is a "change", one that only computes a "view", for which a token that reads
     will do. `throttles = {"POST": "start"}` where a method is none of read and write.
   - What the address names: `find_visible(Thing.objects.all(), thing_id, request.user)`; what is nested, in its
     parent's rows: `find_visible(dataset.mappings.all(), mapping_id, request.user)`. That answers 403 and 404 as it
     should; do it before reading the body, so that whoever may not learns nothing from a 400. Rows whose owner is
     another's (runs, queries): `through="benchmark"`, as in `benchbench.access.visible`.
   - What is stated: `valid(ThingRequest, request.data)`, `valid(PageQuery, request.query_params)`.
   - A list: `answer_page(ThingPage, visible(rows, request.user), query)`, in a total order, with `select_related` for
     whatever the serializer reads: at most 10 queries whatever the size.
   - A POST that makes or starts something is `@idempotent`. Errors are raised, never answered: any `BenchbenchError`
     becomes its status and code.
   - `@extend_schema(operation_id=…, request=…, parameters=[PageQuery], responses={201: ThingFacts})` outside of
     `@idempotent`; the method's docstring is the summary and the description. Errors and headers are added; a
     GET that may be 409 says so: `responses={200: ThingFacts} | refusals(409)`; so does a body that names what may be
     missing: `refusals(404)`.
3. `urls.py`: a line, without a slash at the end. tests/api/story.py: a step that asks it, of which the schema has its
   examples. Then `make openapi`, and commit docs/openapi.yaml and apps/api/examples/.
4. Tests in tests/api: test_isolation.py asks every address as everybody by itself; a parameter that is new gets a row
   in its `world()`. The fixture `callers` (owner, other, overseer, reader, idle, visitor, anonymous) asks with
   tokens; the statuses of each for each method stand in one table, as in test_datasets.py; every 4xx; the number of
   queries.
"""
