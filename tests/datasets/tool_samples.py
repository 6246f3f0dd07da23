"""Files as other tools export them, in the shapes that the readers' modules name the sources of."""

from typing import Any

QUEPID_CSV = 'query,docid,rating\nstar wars,11,3\nstar wars,12,0\n" -r disc",13,10\nstar trek,,\nstar wars,14,\n'
QUEPID_JSON = {
    "queries": [
        {"query": "star wars", "ratings": {"11": 3, "12": 0, "14": None}},
        {"query": "star trek", "ratings": {}},
    ]
}
RRE: dict[str, Any] = {
    "index": "movies",
    "topics": [
        {
            "query_groups": [
                {
                    "queries": [{"template": "q.json", "placeholders": {"$query": "star wars"}}],
                    "relevant_documents": {"3": ["11"], "0": ["12"]},
                }
            ]
        }
    ],
    "queries": [{"placeholders": {"$query": "star trek"}, "relevant_documents": {}}],
}
LTR = "\n3 qid:7 # 11 star wars\n\n0 qid:7 1:0.5 2:1 # 12 star wars\n"
LTR_OLD = '3    qid:7 #    11; "star wars"\n0    qid:7 #    12; "star wars"\n    qid:8 #    1; "star trek"\n'
LTR_TITLED = "# qid:7: star wars\n#\n3\tqid:7 #\t11\tA New Hope\n0\tqid:7 #\t12\tRambo\n"
SNAPSHOT: dict[str, Any] = {
    "id": 2471,
    "name": "no-vector",
    "time": "2023-05-03T14:26:14.000Z",
    "has_snapshot_file": False,
    "docs": {
        "205277": [
            {"id": "b", "explain": {"value": 13.5}, "rated_only": False, "fields": None},
            {"id": "a", "explain": None, "rated_only": False, "fields": {"title": "A"}},
            {"id": "z", "explain": None, "rated_only": True, "fields": None},
        ],
        "205278": [],
        "999": [{"id": "a", "rated_only": False}],
    },
    "queries": [
        {
            "arranged_at": 0,
            "query_id": 205277,
            "query_text": "projector screen",
            "options": None,
            "notes": None,
            "information_need": "A screen for my project.",
            "ratings": {"a": 3.0, "z": 1.0, "n": None},
        },
        {"query_id": 205278, "query_text": "notebook", "notes": "A laptop.", "ratings": {"b": 0.0}},
    ],
    "scores": [{"query_id": 205277, "score": 0.36, "all_rated": True, "number_of_results": 564}],
}
RANK_EVAL: dict[str, Any] = {
    "templates": [{"id": "one_field", "template": {"inline": {"query": {"match": {"{{field}}": "{{q}}"}}}}}],
    "requests": [
        {
            "id": "amsterdam_query",
            "request": {"query": {"match": {"text": "amsterdam"}}},
            "ratings": [
                {"_index": "my_index", "_id": "doc1", "rating": 0},
                {"_index": "my_index", "_id": "doc2", "rating": 3},
            ],
        },
        {
            "id": "berlin_query",
            "template_id": "one_field",
            "params": {"q": "berlin", "boost": 2},
            "ratings": [{"_index": "my_index", "_id": "doc1", "rating": 1}],
        },
    ],
    "metric": {"precision": {"k": 20}},
}
JUDGMENTS: dict[str, Any] = {
    "name": "Imported Judgments",
    "description": "Judgments generated outside SRW",
    "type": "IMPORT_JUDGMENT",
    "judgmentRatings": [
        {"query": "red dress", "ratings": [{"docId": "B1", "rating": "3.000"}, {"docId": "B2", "rating": "0.000"}]},
        {"query": "blue jeans", "ratings": [{"docId": "B1", "rating": "1.000"}]},
        {"query": "red dress", "ratings": [{"docId": "B1", "rating": "3.0"}, {"docId": "B3", "rating": 2}]},
    ],
}
QUERY_SET = {
    "name": "TVs",
    "description": "Some TVs that people might want",
    "sampling": "manual",
    "querySetQueries": [{"queryText": "tv"}, {"queryText": "led tv", "category": "video"}, {"queryText": "tv"}],
}
QUERY_LINES = '{"queryText": "capital of France?", "referenceAnswer": "Paris"}\n'
LOG = (
    "query,count,clicks,day\nShoes,10,3,Mon\n shoes ,5,,Tue\nＳＨＯＥＳ,2,1,Tue\n,4,0,Mon\n"
    "red  hat,3,0,Mon\nscarf,1,0,Mon\n"
)
