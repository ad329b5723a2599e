"""The texts by which a document may be called, in any language: they are cleaned, and judged. Pure.

A page calls a link "Download (PDF, 2 MB)" or "here", and a program calls a file "Microsoft Word - final2.doc". Such
texts are kept, with the reason why no reader is shown them.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from urllib.parse import unquote, urlsplit


def _folded(text: str) -> str:
    """A text in lower case without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(one for one in apart if not unicodedata.combining(one))


def _words(text: str) -> frozenset[str]:
    return frozenset(map(_folded, text.split()))


LONGEST = 500  # characters of a value that is kept
EXTENSIONS = frozenset(
    [
        "pdf",
        "epub",
        "mobi",
        "doc",
        "docx",
        "docm",
        "dot",
        "dotx",
        "xls",
        "xlsx",
        "xlsm",
        "ppt",
        "pptx",
        "pps",
        "ppsx",
        "odt",
        "ods",
        "odp",
        "odg",
        "rtf",
        "ps",
        "eps",
        "csv",
        "txt",
        "zip",
    ]
)
_UNITS = frozenset(
    [
        "b",
        "kb",
        "mb",
        "gb",
        "kib",
        "mib",
        "gib",
        "ko",
        "mo",
        "go",
        "кб",
        "мб",
        "bytes",
        "byte",
        "kbytes",
        "mbytes",
        "pages",
        "seiten",
        "pp",
        "sidor",
        "sider",
        "paginas",
        "pagine",
    ]
)
_HOW = _words(
    # of each language: to load, to open, to read; here, more, this; file, document, attachment, link; size, page
    """
    download downloads downloadable click here view open read more full text fulltext access get save print see show
    this
    the a an as to in of for and file files document documents attachment link version format size page pages new
    window
    opens tab adobe acrobat reader word excel powerpoint now continue learn preview icon accessible external
    english welsh cymraeg deutsch german french francais spanish espanol italian italiano portuguese portugues dutch
    nederlands svenska norsk dansk suomi polski russian chinese japanese arabic fr de es it nl sv pl pt cy
    herunterladen hier klicken klick ansehen anzeigen offnen lesen mehr weiterlesen weiter datei dokument anhang als
    seite
    seiten grosse zum zur der die das den ist nicht barrierefrei speichern jetzt fenster neues volltext
    telecharger telechargez telechargement ici cliquez cliquer lire la le les suite voir ouvrir consulter fichier
    document
    piece jointe taille plus savoir en au du texte integral nouvelle fenetre
    descargar descarga aqui haga clic pulse ver abrir leer mas archivo fichero documento adjunto tamano pagina paginas
    el
    los texto completo
    scarica scaricare qui clicca vai apri leggi di piu allegato scheda dimensione pagine il testo
    baixar baixe descarregar transferir clique ler mais ficheiro arquivo anexo tamanho
    downloaden hier klik lees meer bekijk openen bestand bijlage grootte pagina naar het
    ladda ned ner har klicka las mer oppna visa fil dokument bilaga storlek sida last hent her klikk les mer apne vis
    fil
    vedlegg storrelse side laes mere abn bilag lataa tasta avaa lue lisaa tiedosto liite koko sivu
    pobierz tutaj kliknij zobacz otworz czytaj wiecej plik zalacznik rozmiar strona stahnout zde kliknete otevrit vice
    soubor priloha velikost stiahnut viac letoltes letoltheto itt kattintson megnyitas tovabb fajl dokumentum
    descarcati descarca aici click citeste mai mult fisier indir tikla buraya ac oku dosya belge boyut preuzmi ovdje
    скачать загрузить здесь открыть читать далее подробнее смотреть файл документ размер страница завантажити тут
    переглянути відкрити детальніше изтегли тук файла
    λήψη κατεβαστε ληψη εδω αρχειο εγγραφο περισσοτερα ανοιγμα προβολη
    تحميل تنزيل هنا الملف الان اضغط المزيد ملف عرض اقرا הורדה להורדה כאן לחץ קובץ מסמך עוד
    डाउनलोड यहाँ यहां फाइल देखें unduh disini lihat tai ve xem
    untitled unbenannt sans titre sin titulo senza titolo sem namnlos bez tytulu
    """
)
_KINDS = _words(
    # a kind of document alone: "Full report", "Lecture 3"
    """
    report paper article slides slide notes handout handouts lecture lectures chapter appendix annex part section main
    summary executive abstract publication publications brochure leaflet booklet presentation complete entire final
    draft
    preprint postprint manuscript supplement supplementary material minutes agenda transcript poster form
    bericht folien skript vorlesung kapitel anlage teil broschure prasentation protokoll aufsatz artikel
    rapport diaporama chapitre annexe partie brochure resume compte rendu informe capitulo anexo parte resumen
    relazione capitolo riassunto relatorio verslag hoofdstuk samenvatting raport rozdzial отчет глава
    """
)
_MONTHS = (
    "jan januar january janvier enero gennaio janeiro januari",
    "feb februar february fevrier febrero febbraio fevereiro februari",
    "mar march marz mars marzo marco maart mrz",
    "apr april avril abril aprile",
    "may mai mayo maggio maio mei maj",
    "jun june juni juin junio giugno junho",
    "jul july juli juillet julio luglio julho",
    "aug august aout agosto augustus augusti",
    "sep sept september septembre septiembre settembre setembro",
    "oct october oktober octobre octubre ottobre outubro okt",
    "nov november novembre noviembre novembro",
    "dec december dezember decembre diciembre dicembre dezembro desember dez",
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_UNSPACED = re.compile("[\u0e01-\u0e4e\u1000-\u109f\u1780-\u17d3\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]+")
_UNSPACED_HOW = re.compile(
    "ダウンロード|こちら|ここ|クリック|詳細|詳しく|ファイル|文書|本文|全文|開く|見る|続きを読む|を|は|の|へ|で|"
    "下载|下載|点击|點擊|這裡|这里|此处|此處|查看|打开|打開|阅读|閱讀|更多|详细|文件|檔案|附件|原文|版|"
    "다운로드|내려받기|바로가기|보기|여기|클릭|파일|첨부|원문|ดาวนโหลด|ดาวน์โหลด|ที่นี่|คลิก|ไฟล์|เอกสาร"
)
# What a word may have between its letters.
_MARKS = "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0971-\u0dff\u0e31-\u0e4e"
_WORD = re.compile(f"(?:[^\\W\\d_]|[{_MARKS}])+")
_YEAR = re.compile(r"(?<!\d)(?:1[89]|20)\d\d(?!\d)")
_BRACKET = re.compile(r"[(\[\uff08]([^()\[\]\uff08\uff09]{1,80})[)\]\uff09]\W{0,3}\Z")
_FIRST = re.compile(r"\A([^\W\d_]{2,15}(?: [^\W\d_]{2,15}){0,2})\s?[:|\u2013\u2014-]\s+(?=\S)")
_ENDINGS = "|".join(sorted({*EXTENSIONS, "indd", "qxd", "tex", "dvi", "htm", "html", "tmp"}))
_FILE_NAME = re.compile(rf"\A\S{{1,300}}\.(?:{_ENDINGS})\Z", re.IGNORECASE)
_OF_PROGRAM = re.compile(
    r"\A(?:microsoft |openoffice|libreoffice|adobe |untitled\b|unbenannt|unknown\Z|none\Z|null\Z|title\Z|"
    r"document ?\d*\Z|dokument ?\d*\Z|book ?\d*\Z|mappe ?\d*\Z|classeur ?\d*\Z|sheet ?\d*\Z|"
    r"presentation ?\d*\Z|layout ?\d+\Z|"
    r"powerpoint[ -]|slide \d+\Z|folie \d+\Z|diapositive \d+\Z|no slide title|kein folientitel|diapositiva \d+\Z|"
    r"index of /|print(?:ing)? |scan\b|scanned |img[_ ]?\d|image ?\d*\Z|page ?\d*\Z|"
    r"seite ?\d*\Z|template\Z|\W*\d*\W*\Z)",
    re.IGNORECASE,
)
_URL = re.compile(r"\A(?:https?://|www\.)\S*\Z", re.IGNORECASE)
_CAMEL = re.compile(r"[_\d]")
GENERIC, PROGRAM, FILE, SHORT, SHARED = (
    "says how to get a file, not which", "made by a program", "a file name or an address", "too short",
    "two documents share it",
)  # fmt: skip


def plain(text: str) -> str:
    """A text in one line without invisible characters, at most LONGEST characters."""
    text = text[: LONGEST * 8]
    kept = text if text.isprintable() else "".join(one if one.isprintable() else " " for one in text)
    return " ".join(kept.split())[:LONGEST].strip()


@lru_cache(1 << 12)
def clean(text: str) -> str:
    """A text without notes of format and size at its end, and without "PDF:" before it."""
    text = plain(text)
    for _ in range(3):
        found = _BRACKET.search(text)
        if not found or not found.start() or not _is_note(found[1]):
            break
        text = text[: found.start()].rstrip(" ,;:|-\u2013\u2014")
    words, popped = text.split(" "), False
    while len(words) > 1:
        last, bare = words[-1], _bare(words[-1])
        is_size = bare.lstrip("0123456789.,") in _UNITS and (bare[0].isdigit() or _bare(words[-2])[:1].isdigit())
        if is_size and not bare[0].isdigit():
            words.pop()  # the unit; its number follows
        elif not is_size and bare not in EXTENSIONS and (bare or not popped) and last not in "-\u2013\u2014|,":
            break
        words.pop()
        popped = True
    text = " ".join(words) if popped else text
    first = _FIRST.match(text)
    if first and all(word in _HOW or word in EXTENSIONS for word in map(_folded, first[1].split())):
        text = text[first.end() :]
    return text.strip(" \t,;:|-\u2013\u2014") if popped or first else text


@lru_cache(1 << 12)
def why_not(text: str) -> str:
    """Why a text is not a good title; '' if it may be one."""
    if _URL.match(text) or _FILE_NAME.match(text):
        return FILE
    if _OF_PROGRAM.match(text):
        return PROGRAM
    words = [word for run in _WORD.findall(text) for word in _parts(run)]
    if sum(map(len, words)) < (2 if _UNSPACED.search(text) else 3):
        return GENERIC if (_WORD.search(text) and not words) or text.lower() in EXTENSIONS else SHORT
    folded = [_folded(word) for word in words]
    left = [one for one in folded if one not in _HOW and one not in EXTENSIONS and one not in _UNITS]
    if not left:
        return GENERIC
    if all(one in MONTHS or len(one) == 1 for one in left):
        return GENERIC
    if all(one in _KINDS or len(one) == 1 for one in left) and not _YEAR.search(text):
        return GENERIC
    if " " not in text and _CAMEL.search(text) and ("_" in text or sum(map(str.isdigit, text)) * 3 > len(text)):
        return FILE
    return ""


def is_word(text: str) -> bool:
    """True for a single word, in a script that has blanks between words."""
    return " " not in text.strip() and not _UNSPACED.search(text)


def sharable(text: str) -> str:
    """A text as it is compared with that of another document."""
    return _folded(text)


def of_file(filename: str, url: str) -> str:
    """The name of a file: as the response has it, else that of its URL; '' without one."""
    try:
        path = urlsplit(url).path
    except ValueError:
        path = url.partition("?")[0]
    segments = [plain(unquote(one)) for one in path.split("/") if one]
    with_ending = (one for one in reversed(segments) if one.rpartition(".")[2].lower() in EXTENSIONS)
    return plain(filename) or next(with_ending, segments[-1] if segments else "")


def title_of_file(name: str) -> str:
    """A file's name in words."""
    stem, _, ending = name.rpartition(".")
    stem = stem if stem and len(ending) <= 5 else name
    return plain(re.sub(r"[_+]+" if " " in stem else r"[-_+]+", " ", stem))


def _parts(run: str) -> list[str]:
    """The words of a run of letters: where a script has no blanks between them, what is left without generic ones."""
    if run.isascii() or not _UNSPACED.search(run):
        return [run]
    return [part for part in _UNSPACED.sub(lambda found: f" {_UNSPACED_HOW.sub(' ', found[0])} ", run).split() if part]


def _is_note(text: str) -> bool:
    """True if all words of a text are of formats, sizes and ways to get a file."""
    words = [_folded(word) for run in _WORD.findall(text) for word in _parts(run)]
    known = sum(word in EXTENSIONS or word in _UNITS or word in _HOW for word in words)
    return known == len(words) and any(word in EXTENSIONS or word in _UNITS for word in words)


def _bare(word: str) -> str:
    return word.strip("()[],;:.").casefold()
