"""Fields of a table of judgments, and names that people give to their columns, in some languages."""

import re
from collections.abc import Collection, Iterable, Mapping

REFERENCES = ("doc_ref", "document_id", "uri", "content_hash", "path", "file_name", "documents")
DOCUMENTS = "documents"  # several in a cell, or one in each of several columns, which are documents, documents_2, …
FIELDS = (
    *("query_key", "query_text", "grade"),
    *REFERENCES,
    *("category", "difficulty", "query_type", "split", "expected_answer", "notes", "weight"),
)
# Of several columns with names for one field, the first name here decides. Names are compared by their letters alone.
SYNONYMS: dict[str, str] = {
    "query_key": "query_id qid question_id topic_id query_no frage_id id_requête id_consulta",
    "query_text": "query question frage search_query search_term search_phrase suchanfrage anfrage suchbegriff "
    "query_string user_query keyword keywords requête prompt question_text search_string user_input consulta "
    "pregunta búsqueda domanda ricerca interrogazione pergunta pesquisa zoekopdracht zoekterm vraag fråga zapytanie "
    "sorgu запрос クエリ 検索語 検索クエリ 質問 查询 查詢 问题 問題 搜索词 질의 검색어 text",
    "grade": "rating relevance relevance_grade rel judgment judgement stars relevanz bewertung gain punkte "
    "relevant is_relevant relevance_score relevance_label relevancy correct esci_label query_relevance_label "
    "pertinence relevancia puntuación calificación nota rilevanza punteggio voto valutazione relevância avaliação "
    "pontuação relevantie beoordeling relevans betyg ocena puan оценка релевантность "
    "評価 関連度 適合度 评分 評分 分数 分數 相关性 相關性 평점 평가 "
    "label score note",  # these last, as they may be of other things
    "document_id": "doc_id doc_no document doc corpus_id passage_id dokument_id dokument dok product_id item_id "
    "article_id artikel_id pid id_document identifiant_document identifiant_du_document documento "
    "id_documento documento_id identifiant belge документ 文書 文書id ドキュメント ドキュメントid "
    "文档 文档id 文檔 文件 문서 문서id",
    "uri": "url link web_page page_url document_url doc_url enlace lien",
    "path": "file_path document_path doc_path pfad dateipfad",
    "file_name": "file datei dateiname document_name fichier archivo bestand ファイル 文件名",
    DOCUMENTS: "docs doc_ids document_ids relevant_docs relevant_documents relevant_doc_ids expected_docs urls sources "
    "expected_documents expected_doc_ids gold_docs gold_ids dokumente positive_passages relevant_passages "
    "retrieval_ground_truth",
    "content_hash": "sha256",
    "expected_answer": "answer ground_truth reference_answer expected_output antwort réponse",
}
REMARK = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
NUMBERED = re.compile(r"((?:relevant|expected)?(?:doc|docid|document|documentid|url|result|dokument))(\d{1,3})")
ALONE = (
    "result",
    "product",
    "source",
    "quelle",
    "fuente",
    "fonte",
    "title",
    "titel",
    "titre",
)  # names for a document where no column has another
RELEVANT = (
    "relevant",
    "positive",
    "expected",
    "gold",
    "retrievalgroundtruth",
)  # how the name of a column begins whose documents are relevant
SEVERAL = re.compile(r"documents_\d{1,3}")
IN_QUERIES = ("id", "nr", "no")  # names for a query's key in a table without documents


def fold_column(name: str) -> str:
    """Return a column's name by its letters and digits alone, in small letters, without remarks in brackets."""
    return re.sub(r"[\W_]+", "", REMARK.sub("", name).casefold()) or re.sub(r"[\W_]+", "", name.casefold())


NAMES = {
    field: [fold_column(field), *(fold_column(name) for name in SYNONYMS.get(field, "").split())] for field in FIELDS
}


def assign_columns(names: Iterable[str], chosen: Mapping[str, str], ignored: Collection[str]) -> dict[str, str]:
    """Return the column of each field: the `chosen` one, else that of its own name, else that of a name for it.

    A column has one field, and an ignored one has no field. A row has one reference or DOCUMENTS; only `chosen` columns
    may be both.
    """
    free = [name for name in names if name not in ignored and name not in chosen.values()]
    assigned = {**chosen, **{name: name for name in free if name in FIELDS and name not in chosen}}
    by_letters = {fold_column(name): name for name in reversed(free) if name not in assigned.values()}
    for field, words in NAMES.items():
        word = next((word for word in words if word in by_letters), None)
        if word and field not in assigned:
            assigned[field] = by_letters.pop(word)
    if DOCUMENTS in assigned and len(assigned.keys() & REFERENCES) > 1:
        dropped = {*REFERENCES} - {DOCUMENTS} if DOCUMENTS in chosen else {DOCUMENTS}
        assigned = {field: name for field, name in assigned.items() if field in chosen or field not in dropped}
    if assigned.keys().isdisjoint(REFERENCES):
        numbered = [name for letters, name in by_letters.items() if NUMBERED.fullmatch(letters)]
        assigned |= {number_field(DOCUMENTS, number): name for number, name in enumerate(reversed(numbered), start=1)}
    if assigned.keys().isdisjoint(REFERENCES):
        column = next((by_letters.pop(word) for word in ALONE if word in by_letters), None)
        assigned |= {"document_id": column} if column else {}
    if "query_key" not in assigned and assigned.keys().isdisjoint(REFERENCES):
        column = next((by_letters[word] for word in IN_QUERIES if word in by_letters), None)
        assigned |= {"query_key": column} if column else {}
    return assigned


def number_field(field: str, number: int) -> str:
    """Return the field of the column of a number: documents, documents_2, documents_3."""
    return field if number == 1 else f"{field}_{number}"


def find_field(name: str) -> str:
    """Return the field that a numbered one is of; any other name unchanged."""
    return DOCUMENTS if SEVERAL.fullmatch(name) else name
