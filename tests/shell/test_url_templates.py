"""Only web addresses with known placeholders become links."""

import pytest

from mrshc.shell.url_templates import find_template_flaw


@pytest.mark.parametrize(
    "template",
    [
        "https://example.org/{gene}",
        "http://localhost:8080/?q={gene}&probe={feature}#top",
        "HTTPS://münchen.example/{gene}",
        "https://[::1]/{gene}",
    ],
)
def test_web_addresses_are_accepted(template):
    assert find_template_flaw(template) is None


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("javascript:alert('{gene}')", 'it contains "\'"'),
        ("javascript:alert({gene})", "it does not begin with http:// or https://"),
        ("data:text/html,{gene}", "it does not begin with"),
        ("//example.org/{gene}", "it does not begin with"),
        ("example.org/{gene}", "it does not begin with"),
        ("https://{gene}", "it has a placeholder in the name of the host"),
        ("https://example.org{gene}", "it has a placeholder in the name of the host"),
        ("https:///{gene}", "it has no host"),
        ("https://me:secret@example.org/{gene}", "it has no host, or a user name"),
        ("https://example.org/", "it contains no placeholder"),
        ("", "it contains no placeholder"),
        ("https://example.org/{Gene}", "it contains the unknown placeholder {Gene}"),
        ("https://example.org/{gene}{}", "it contains the unknown placeholder {}"),
        ("https://example.org/{gene}}", "it contains a brace"),
        ("https://example.org/ {gene}", "it contains ' '"),
        ("https://example.org/{gene}\n", "it contains '\\n'"),
        ('https://example.org/{gene}" onclick="x', "it contains '\"'"),
        ("https://example.org/<{gene}>", "it contains '<'"),
        ("https://example.org:port/{gene}", "it is not a valid address"),
        ("https://[bad/{gene}", "it is not a valid address"),
    ],
)
def test_other_texts_are_refused_with_a_reason(template, reason):
    assert find_template_flaw(template).startswith(reason)
