"""The texts by which a document may be called: which are good, and what is left of them; and dates."""

from __future__ import annotations

import pytest

from warcmill.versions.documents import dates, texts

BAD = (
    """
Download (PDF, 2 MB)|Herunterladen|Télécharger|pdf|here|Untitled|Microsoft Word - Report final.doc|report_final_v2.pdf
2.3 MB|PDF 345 KB|Download PDF|Click here to download|Hier klicken|Datei herunterladen (PDF, 1,2 MB)
Télécharger le document (PDF - 1,5 Mo)|Descargar archivo|Scarica il PDF|ダウンロード|PDFダウンロード|下载|点击这里下载
PDF 다운로드|Скачать|Скачать файл (PDF, 300 КБ)|डाउनलोड|تحميل الملف|λήψη|Full text|Full Text (PDF)|View PDF|Read more
Weiterlesen|Lire la suite|En savoir plus|Slides|Lecture 3|Handout|English|Welsh version (PDF)|https://example.org/a.pdf
PowerPoint Presentation|Slide 1|Document1|12|2023|Executive summary|Full report|Get PDF|Open document|[PDF]|(PDF)|Print
Pobierz plik|Ladda ner|Last ned|Hent|Lataa|Letöltés|Ver documento|Baixar|March 2023|A1-b2_x|Accessible version|EN|p. 3
Untitled-1|Layout 1|Microsoft PowerPoint - talk|IMG_2034|opens in a new window|Annual_Report_2020|Download report
""".strip()
    .replace("\n", "|")
    .split("|")
)
GOOD = (
    """
Annual Report 2023|Jahresbericht 2022|COVID-19|Report 2023|The State of Nature|Lecture 3: Trees and graphs|Air
Rapport annuel 2021|令和5年度 報告書|年度报告|연차보고서|Годовой отчет 2022|वार्षिक रिपोर्ट|Guidance on X|Strategic plan
Ergebnisse der Umfrage|Newsletter March 2023|Minutes of the meeting of 3 May|On reading documents aloud|Brexit
""".strip()
    .replace("\n", "|")
    .split("|")
)


@pytest.mark.parametrize("text", BAD)
def test_a_text_that_is_no_title_is_not_good(text: str) -> None:
    assert texts.why_not(texts.clean(text))


@pytest.mark.parametrize("text", GOOD)
def test_a_title_is_good_and_stays_as_it_is(text: str) -> None:
    assert (texts.clean(text), texts.why_not(text)) == (text, "")


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Annual Report 2023 (PDF, 2 MB)", "Annual Report 2023"),
        ("Annual Report 2023 PDF 2 MB", "Annual Report 2023"),
        ("Annual Report 2023 [pdf]", "Annual Report 2023"),
        ("PDF: Annual Report 2023", "Annual Report 2023"),
        ("Download: Annual Report", "Annual Report"),
        ("Budget 2023, PDF, 345KB, 12 pages", "Budget 2023"),
        ("Stadtplan (PDF, 2 MB, nicht barrierefrei)", "Stadtplan"),
        ("Rapport (PDF, 345 Ko, 12 pages)", "Rapport"),
        ("Plan (2019)", "Plan (2019)"),
        ("Report on C (programming language)", "Report on C (programming language)"),
        ("  a\u202eb\n\tc\x00 ", "a b c"),
    ],
)
def test_notes_of_format_and_size_are_no_part_of_a_title(text: str, left: str) -> None:
    assert texts.clean(text) == left


@pytest.mark.parametrize(
    "text", ["a (" * 400_000, "pdf " * 300_000, "1 MB " * 200_000, "(" * 1_000_000, "x" * 1_000_000]
)
def test_a_text_of_a_megabyte_is_cut(text: str) -> None:
    assert len(texts.clean(text)) <= texts.LONGEST
    texts.why_not(texts.clean(text))


@pytest.mark.parametrize(
    ("filename", "url", "name", "title"),
    [
        ("", "http://a.example/docs/annual-report_2023.pdf", "annual-report_2023.pdf", "annual report 2023"),
        ("", "http://a.example/x.pdf/1234?t=5", "x.pdf", "x"),
        ("My file.PDF", "http://a.example/x", "My file.PDF", "My file"),
        ("", "http://a.example/%C3%BCber+uns.pdf", "über+uns.pdf", "über uns"),
        ("", "http://a.example/download", "download", "download"),
        ("", "http://a.example/", "", ""),
    ],
)
def test_a_file_has_a_name(filename: str, url: str, name: str, title: str) -> None:
    assert (texts.of_file(filename, url), texts.title_of_file(name)) == (name, title)


@pytest.mark.parametrize(
    ("text", "date"),
    [
        ("2023", "2023"), ("2023-05", "2023-05"), ("2023/5/4", "2023-05-04"),
        ("2023-05-04T10:00:00+01:00", "2023-05-04"),
        ("D:20230504101112Z", "2023-05-04"), ("20230504", "2023-05-04"), ("202305", "2023-05"),
        ("4 May 2023", "2023-05-04"),
        ("May 4th, 2023", "2023-05-04"), ("May 2023", "2023-05"), ("4. Mai 2023", "2023-05-04"),
        ("12 août 2021", "2021-08-12"), ("04.05.2023", "2023-05-04"), ("25/12/2022", "2022-12-25"),
        ("12/25/2022", "2022-12-25"), ("03/04/2023", "2023"), ("Wed, 21 Oct 2015 07:28:00 GMT", "2015-10-21"),
        ("2023-13-45", "2023"), ("© 2020", "2020"), ("2023-02-30", "2023-02"), ("15 de marzo de 2020", "2020-03-15"),
        ("n.d.", ""), ("1066", ""), ("0000-00-00", ""), ("99999999", ""), ("", ""), ("9" * 1_000_000, ""),
    ],
)  # fmt: skip
def test_a_date_is_brought_into_its_normal_form(text: str, date: str) -> None:
    assert dates.normal(text) == date
