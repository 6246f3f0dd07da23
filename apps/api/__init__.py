"""The REST API: the use cases of BenchBench over HTTP. It parses, calls one use case, presents.

How to add an endpoint, by the example of datasets:

1. `resources/<things>.py` has the requests of a thing, its answers and its addresses, in this order. The OpenAPI schema
   is generated from it. Each field is declared once.
   - A request: a `StrictSerializer` of REST framework's fields, and of those of `apps/api/fields.py` where these are
     too lenient: `Text`, `Int`, `Number`, `Flag`, `Identifier` (an unknown key, another type: 400). Name it with a
     noun (`DatasetUpload`); its component is called `DatasetUploadRequest`.
   - An answer that is columns of a model: a `ModelAnswer`, whose `Meta.fields` names them (`DatasetAnswer`).
   - An answer that a use case computes: a frozen dataclass of its room. Its fields have their help as
     `Annotated[int, "..."]`. The class is both schema and answer; commands print `asdict(report)`.
     If the API adds or renames a field, write a subclass of `Answer` with the dataclass in its `Meta`.
   - A list: `build_page("datasets", DatasetAnswer)`.
2. In the same module: a `Resource` with a method for each operation, whose name is the operationId. See
   `apps/api/resource.py` for the decorators.
   - An operation needs the permission of the admin on `model`: GET view, POST, PUT and PATCH change, DELETE delete;
     `act="add"` overrides it. A POST that only computes something is a "view", for which a read-only token suffices.
     `throttle="start"` is for an operation that is neither read, write nor upload.
   - `find` returns the object of an address: `find_visible(Thing.objects.all(), thing_id, self.user)`; a nested one, in
     its parent's rows: `find_visible(dataset.mappings.all(), mapping_id, self.user)`. It answers 403 and 404 before
     the body is read, so that a 400 reveals nothing to users who may not see the object. For rows owned through another
     model (runs, queries): `through="benchmark"`, as in `benchbench.access.visible`.
   - `@post("/things", ThingAnswer, ThingRequest, status=201)`: the method gets the object and the request's values, and
     returns what `ThingAnswer` presents.
   - `@get("/things", ThingPage, PageQuery)`: the method returns the rows in a total order, with `select_related` for
     the answer's fields: at most 10 queries for any size.
   - A POST that is not a "view" honours Idempotency-Key. Raise errors, never return them: any `BenchbenchError` becomes
     its status and code.
   - The method's docstring is the summary and the description. Errors, headers and the statuses in the docstring are
     added; list other statuses in `refuses=[404]`. `history="Make a thing."` is what the history of the row says.
3. No address ends in a slash; `urls.py` finds the resource. Add a step to tests/api/story.py, from which the schema
   takes its examples. Then run `make openapi`, and commit docs/openapi.yaml and apps/api/examples/.
4. Tests in tests/api: test_isolation.py requests every address as every kind of user, test_addresses.py counts the
   queries of every list. Give a new parameter a row in `world()` and in `crowded()` there. The fixture `callers`
   (owner, other, overseer, reader, idle, visitor, anonymous) has tokens. Write tests of every 4xx.
"""
