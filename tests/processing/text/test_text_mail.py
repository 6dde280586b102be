"""Messages, mailboxes and Outlook messages, with what is attached to them."""

from __future__ import annotations

from email.message import EmailMessage

from text_documents import docx, ole, pdf, word_line

from tidegate.processing.text import TextLimits, extract

LIMITS = TextLimits()


def letter(subject: str = "潮汐 report", body: str = "Dear gate,\nhigh water at noon.\n") -> EmailMessage:
    message = EmailMessage()
    message["From"] = "Wärter <keeper@example.org>"
    message["To"] = "harbour@example.org"
    message["Date"] = "Tue, 01 Dec 2026 10:00:00 +0000"
    message["Subject"] = subject
    message.set_content(body)
    return message


def test_message_gives_decoded_headers_and_body_whatever_its_name() -> None:
    for name in ("a.eml", "a.txt", "a"):
        found = extract(letter().as_bytes(), name, LIMITS)
        assert (found.kind, found.title) == ("eml", "潮汐 report")
        assert found.text == (
            "Subject: 潮汐 report\nFrom: Wärter <keeper@example.org>\nTo: harbour@example.org\n"
            "Date: Tue, 01 Dec 2026 10:00:00 +0000\n\nDear gate,\nhigh water at noon."
        )


def test_settings_with_keys_like_headers_are_no_message() -> None:
    data = b"from: harbour\nto: gate\ndate: 2026-12-01\nsubject: x\nheight: 4.2\n"
    assert extract(data, "a.yaml", LIMITS).text == data.decode()


def test_plain_variant_of_a_body_is_taken_and_html_where_there_is_no_other() -> None:
    both = letter(body="the plain one")
    both.add_alternative("<p>the rich one</p>", subtype="html")
    assert extract(both.as_bytes(), "a", LIMITS).text.endswith("the plain one")
    rich = letter()
    rich.set_content("<p>only <b>rich</b></p>", subtype="html")
    assert extract(rich.as_bytes(), "a", LIMITS).text.endswith("only rich")


def test_text_of_attachments_is_found_and_unreadable_ones_do_no_harm() -> None:
    message = letter(body="see attached")
    message.add_attachment(
        docx(word_line("from the document")), maintype="application", subtype="x", filename="潮汐.docx"
    )
    message.add_attachment(pdf(["from the page"]), maintype="application", subtype="pdf", filename="a.pdf")
    message.add_attachment(
        pdf(["x"], passwords=("a", "b")), maintype="application", subtype="pdf", filename="locked.pdf"
    )
    message.add_attachment(b"\x89PNG\r\n\x1a\n\0\0", maintype="image", subtype="png", filename="gate.png")
    text = extract(message.as_bytes(), "a", LIMITS).text
    for wanted in ("see attached", "潮汐.docx\nfrom the document", "a.pdf\nfrom the page", "locked.pdf", "gate.png"):
        assert wanted in text


def test_messages_within_messages_are_followed_to_the_cap() -> None:
    message = letter("number 0", "body 0")
    for number in range(1, 12):
        outer = letter(f"number {number}", f"body {number}")
        outer.add_attachment(message)
        message = outer
    text = extract(message.as_bytes(), "a.eml", LIMITS).text
    assert "body 11" in text
    assert f"body {11 - LIMITS.mail_nesting}" in text
    assert f"body {10 - LIMITS.mail_nesting}" not in text


def test_body_and_headers_in_raw_gbk_are_decoded() -> None:
    data = (
        "From: a@example.org\nTo: b@example.org\nSubject: 潮汐记录与闸门\n\n闸门管理办法，请各部门认真执行。\n".encode(
            "gbk"
        )
    )
    found = extract(data, "a.eml", LIMITS)
    assert found.title == "潮汐记录与闸门"
    assert found.text.endswith("闸门管理办法，请各部门认真执行。")


def test_broken_headers_are_borne() -> None:
    data = (
        b"From: =?utf-8?B?!!!?= <a@b>\nTo: =?no-such-set?Q?x=E9?=\nSubject: =?utf-8?Q?ok=\nContent-Type: text/plain;"
        b" charset*=bogus'%%%\nContent-Transfer-Encoding: base64\nDate: never\n\n!!!not base64!!!\n"
    )
    assert extract(data, "a.eml", LIMITS).kind == "eml"


def test_all_messages_of_a_mailbox_are_found() -> None:
    box = b"".join(
        b"From keeper@example.org Tue Dec  1 10:00:00 2026\n"
        + letter(f"number {n}", f"body {n}\nFrom here on\n").as_bytes()
        + b"\n"
        for n in range(3)
    )
    found = extract(box, "inbox", LIMITS)
    assert found.kind == "mbox"
    assert [f"Subject: number {n}" in found.text and f"body {n}\nFrom here on" in found.text for n in range(3)] == [
        True
    ] * 3


def wide(text: str) -> bytes:
    return text.encode("utf-16-le")


def test_outlook_message_gives_subject_people_body_and_attachments() -> None:
    attached = "__attach_version1.0_#00000000"
    data = ole(
        {
            "__properties_version1.0": b"\0" * 32,
            "__substg1.0_0037001F": wide("潮汐 report"),
            "__substg1.0_0C1A001F": wide("Keeper"),
            "__substg1.0_0E04001F": wide("Harbour"),
            "__substg1.0_1000001F": wide("High water at noon"),
            f"{attached}/__substg1.0_3707001F": wide("log.txt"),
            f"{attached}/__substg1.0_37010102": b"from the attachment\n".ljust(4096, b"."),
        }
    )
    found = extract(data, "a", LIMITS)
    assert (found.kind, found.title) == ("msg", "潮汐 report")
    assert found.text.startswith("Subject: 潮汐 report\nFrom: Keeper\nTo: Harbour\n\nHigh water at noon\n")
    assert "log.txt\nfrom the attachment" in found.text


def test_outlook_message_without_a_plain_body_gives_its_html_one() -> None:
    data = ole(
        {
            "__properties_version1.0": b"\0" * 32,
            "__substg1.0_0037001E": "潮汐记录".encode("gbk"),
            "__substg1.0_10130102": b"<html><body><p>rich <b>body</b></p></body></html>",
        }
    )
    found = extract(data, "a.msg", LIMITS)
    assert (found.title, found.text.split("\n")[-1]) == ("潮汐记录", "rich body")


def test_compressed_rtf_body_of_an_outlook_message_is_unpacked() -> None:
    from tidegate.processing.text.outlook import unpack_rtf

    # The example of [MS-OXRTFCP] 3.1.1.
    packed = bytes.fromhex(
        "2d0000002b0000004c5a4675f1c5c7a703000a007263706731323542320af32068656c090020627705b06c647d0a800fa0"
    )
    assert unpack_rtf(packed, 1_000) == b"{\\rtf1\\ansi\\ansicpg1252\\pard hello world}\r\n"
