"""The product handbook of the story that the examples report, and the support questions asked of it."""

import json

HANDBOOK = [
    (
        "reset-password",
        "Reset your password",
        "Open Account and press Reset. A link comes by mail. It resets your password.",
        "account",
    ),
    (
        "change-password",
        "Change your password",
        "Under Account state the old password and the new password.",
        "account",
    ),
    ("invoices", "Invoices", "Every invoice is under Billing. An invoice comes by mail each month.", "billing"),
    ("battery", "The battery", "Charge the battery for two hours before you start.", "device"),
    ("start", "How to start", "Charge it, then press the button twice to start.", "device"),
    ("reset-device", "Reset the device", "Press both buttons for ten seconds to reset it.", "device"),
]
WARRANTY = {
    "external_id": "warranty",
    "title": "Warranty",
    "text": "# Terms\nTwo years from the invoice.\n# Battery\nOne year for the battery.",
    "uri": "file:///handbook/warranty.md",
    "file_name": "warranty.md",
    "metadata": {"product": "base"},
    "sections": [
        {"section_id": "terms", "heading": "Terms", "start": 0, "end": 36},
        {"section_id": "battery", "heading": "Battery", "start": 36, "end": 71},
    ],
}
ANSWERS = [
    {"external_id": f"{piece}/faq", "title": f"Questions about {piece}", "text": text, "file_name": "faq.md"}
    for piece, text in {"account": "A password has ten letters.", "device": "Reset it when it does not start."}.items()
]
QUESTIONS = [
    (
        "q1",
        "How do I reset my password?",
        [({"document_id": "reset-password"}, 3), ({"document_id": "change-password"}, 1)],
        "account",
    ),
    ("q2", "Where is my invoice?", [({"document_id": "invoices"}, 2)], "billing"),
    (
        "q3",
        "How long must the battery charge?",
        [({"document_id": "battery"}, 2), ({"document_id": "start"}, 1)],
        "device",
    ),
    ("q4", "How long is the battery under warranty?", [({"document_id": "warranty"}, 2)], "device"),
    (
        "q5",
        "How do I reset the device?",
        [({"document_id": "reset-device"}, 2), ({"file_name": "faq.md"}, 1)],
        "device",
    ),
]


def corpus(documents: list[tuple[str, str, str, str]]) -> str:
    lines = [
        {"_id": id, "title": title, "text": text, "metadata": {"product": "base", "part": piece}}
        for id, title, text, piece in documents
    ]
    return "".join(json.dumps(line) + "\n" for line in lines)


def questions() -> str:
    """Return the dataset in BenchBench JSON."""
    queries = [
        {
            "query_key": key,
            "query_text": text,
            "metadata": {"category": category, "slices": [category]},
            "relevant_docs": [{"doc_ref": doc_ref, "relevance_grade": grade} for doc_ref, grade in docs],
        }
        for key, text, docs, category in QUESTIONS
    ]
    return json.dumps({"schema_version": "1.0", "metadata": {"name": "Support questions"}, "queries": queries})
