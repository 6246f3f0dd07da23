"""Fields of tables of judgments and of documents, and names that people give to their columns, in some languages."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from benchbench.errors import FileFormatError

REFERENCES = ("doc_ref", "document_id", "uri", "content_hash", "path", "file_name", "documents")
DOCUMENTS = "documents"  # several in a cell, or one in each of several columns, which are documents, documents_2, …
METADATA = "metadata"  # of a document, in any number of columns


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a table: its name, its meaning for people, other names of its column, and whether a table needs it.

    Of several columns with names for one field, the first name here decides. Names are compared by their letters alone.
    """

    name: str
    label: str
    synonyms: str = ""
    is_needed: bool = False


OF_JUDGMENTS = (
    Field("query_key", "id of the query", "query_id qid question_id topic_id query_no frage_id id_requête id_consulta"),
    Field(
        "query_text",
        "text of the query",
        "query question frage search_query search_term search_phrase suchanfrage anfrage suchbegriff query_string "
        "user_query keyword keywords requête prompt question_text search_string user_input consulta pregunta búsqueda "
        "domanda ricerca interrogazione pergunta pesquisa zoekopdracht zoekterm vraag fråga zapytanie sorgu запрос "
        "クエリ 検索語 検索クエリ 質問 查询 查詢 问题 問題 搜索词 질의 검색어 text",
        is_needed=True,
    ),
    Field(
        "grade",
        "grade",
        "rating relevance relevance_grade rel judgment judgement stars relevanz bewertung gain punkte relevant "
        "is_relevant relevance_score relevance_label relevancy correct esci_label query_relevance_label pertinence "
        "relevancia puntuación calificación nota rilevanza punteggio voto valutazione relevância avaliação pontuação "
        "relevantie beoordeling relevans betyg ocena puan оценка релевантность "
        "評価 関連度 適合度 评分 評分 分数 分數 相关性 相關性 평점 평가 "
        "label score note",
        is_needed=True,
    ),
    Field("doc_ref", "document, as a uri or JSON", is_needed=True),
    Field(
        "document_id",
        "id of the document",
        "doc_id doc_no document doc corpus_id passage_id dokument_id dokument dok product_id item_id article_id "
        "artikel_id pid id_document identifiant_document identifiant_du_document documento id_documento documento_id "
        "identifiant belge документ 文書 文書id ドキュメント ドキュメントid 文档 文档id 文檔 文件 문서 문서id",
    ),
    Field("uri", "address of the document (uri)", "url link web_page page_url document_url doc_url enlace lien"),
    Field("content_hash", "SHA-256 of the document", "sha256"),
    Field("path", "path of the document", "file_path document_path doc_path pfad dateipfad"),
    Field(
        "file_name",
        "file name of the document",
        "file datei dateiname document_name fichier archivo bestand ファイル 文件名",
    ),
    Field(
        "documents",
        "ids of one or more documents",
        "docs doc_ids document_ids relevant_docs relevant_documents relevant_doc_ids expected_docs urls sources "
        "expected_documents expected_doc_ids gold_docs gold_ids dokumente positive_passages relevant_passages "
        "retrieval_ground_truth",
    ),
    Field("category", "category"),
    Field("difficulty", "difficulty"),
    Field("query_type", "query type"),
    Field("split", "split"),
    Field("expected_answer", "expected answer", "answer ground_truth reference_answer expected_output antwort réponse"),
    Field("notes", "notes"),
    Field("weight", "weight"),
)
OF_DOCUMENTS = (
    Field(
        "id",
        "id of the document",
        "_id external_id id passage_id pid document_id doc_id doc_no corpus_id product_id sku asin item_id article_id "
        "page_id cord_uid uuid guid object_id key identifier dokument_id artikel_id artikelnummer identifiant "
        "documento_id",
        is_needed=True,
    ),
    Field(
        "text",
        "text",
        "text body body_text contents content content_encoded full_text document_text passage page_content description "
        "product_description abstract summary answer document beschreibung inhalt volltext antwort texte contenu "
        "contenido descripción texto testo descrizione conteúdo tekst текст описание 本文 正文 内容 본문",
        is_needed=True,
    ),
    Field(
        "title",
        "title",
        "title name headline heading subject product_title product_name document_title question titel überschrift "
        "bezeichnung titre nom título nombre titolo título nome заголовок название タイトル 标题 標題 제목",
    ),
    Field("uri", "address (uri)", "uri url link source_url page_url web_page"),
    Field("metadata", "metadata, not searched"),
)
FIELDS = tuple(field.name for field in OF_JUDGMENTS)
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


def _fold_names(fields: Iterable[Field]) -> dict[str, list[str]]:
    return {field.name: [fold_column(name) for name in (field.name, *field.synonyms.split())] for field in fields}


NAMES = _fold_names(OF_JUDGMENTS)
NAMES_OF_DOCUMENTS = _fold_names(OF_DOCUMENTS[:-1])


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


def parse_choices(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return the field and the column of lines FIELD=COLUMN and =COLUMN. Raises FileFormatError for others."""
    choices: dict[str, str] = {}
    for line in filter(None, map(str.strip, lines)):
        name, separator, column = (piece.strip() for piece in line.partition("="))
        if not separator or not column:
            raise FileFormatError(f'"{line[:60]}" is not field=column, such as query_text=question.', field="columns")
        if choices.setdefault(column, name) != name:
            fields = f"{choices[column][:60]!a} and {name[:60]!a}"
            raise FileFormatError(f"The column {column[:60]!a} is chosen for {fields}: choose one.", field="columns")
    return [(name, column) for column, name in choices.items()]
