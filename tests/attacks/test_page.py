"""The web page in a browser: nothing in an index, an address, a message or a file name is executed or loaded."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("playwright")

from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from polyad import Document
from polyad.language_models.scripted import ScriptedLanguageModel
from polyad.model import Argument, Location, Section
from polyad_server.app import create_app
from polyad_server.workspaces import Workspaces
from tests.polyad_server.serving import RunningServer, build_index, open_index, run_app

pytestmark = pytest.mark.attacks

PAYLOADS = (
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "'\"--></script></title></style></textarea><script>alert(1)</script>",
    "javascript:alert(1)//",
    "[1](javascript:alert(1)) ![x](https://attacker.example/x.png) [1]: data:text/html,<script>alert(1)</script>",
    "{{constructor.constructor('alert(1)')()}} ${alert(1)} <%= alert(1) %> #{alert(1)}",
    "\u202e<iframe srcdoc='<script>alert(1)</script>'>\u2066\u200f",
    "<a href=https://attacker.example onmouseover=alert(1) autofocus onfocus=alert(1) tabindex=1>x</a>",
    "<math><mtext></p><style><img src=x onerror=alert(1)></style></mtext></math>",
    "<link rel=stylesheet href=//attacker.example/x.css><base href=//attacker.example><meta http-equiv=refresh "
    "content='0;url=//attacker.example'>",
    "__proto__",
    "constructor",
)
OWN_TAGS = "a,article,aside,button,circle,code,dd,details,div,dl,dt,footer,form,g,h1,h2,h3,header,input,label,li,line"
OWN_TAGS += ",mark,option,p,path,progress,section,select,span,strong,summary,svg,table,tbody,td,text,th,thead,time"
OWN_TAGS += ",title,tr,ul"
WATCH = """
window.problems = [];
for (const name of ["alert", "confirm", "prompt", "open", "print"]) window[name] = () => window.problems.push(name);
addEventListener("securitypolicyviolation", (event) => window.problems.push(event.violatedDirective));
"""
FIND = """(tags) => {
  const strange = [...document.querySelectorAll("main *, dialog *, #status *, header *")].filter((node) => {
    const handlers = node.getAttributeNames().some((name) => name.startsWith("on") || name === "srcdoc");
    const address = node.getAttribute("href") ?? node.getAttribute("src") ?? "#";
    return handlers || !tags.includes(node.localName) && node.localName !== "nav" || !/^(#|.openapi)/.test(address);
  });
  const polluted = Object.keys(Object.prototype);
  return [...window.problems, ...polluted, ...strange.map((node) => node.outerHTML.slice(0, 200))];
}"""


def build_documents() -> Iterator[Document]:
    """Yield, for each payload, a text and a fact that hold the payload in every field."""
    for number, payload in enumerate(PAYLOADS):
        text = f"# {payload}\n\nThe bell of Tarn {number} was cast by Ines Moreau. {payload} rings in Corven Tower."
        yield Document(
            f"{payload}.md",
            payload,
            text,
            source=payload,
            sections=(Section(payload, 0, len(text)),),
            url=payload,
            metadata={payload: payload, f"{number}": (payload, payload), "url": payload},
            places=(Location(0, len(text), sheet=payload),),
        )
        arguments = (Argument(payload, payload), Argument("maker", "Ines Moreau"), Argument("bell", "Bell of Tarn"))
        yield Document(f"fact {payload}", payload, f"{payload} cast it", arguments=arguments, relation=payload)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    index = build_index(tmp_path_factory.mktemp("page") / "kb", tuple(build_documents()))
    reply = "\n\n".join(f"{payload} [1] [2](javascript:alert(1)) [1-9, 3; 2]" for payload in PAYLOADS)
    model = ScriptedLanguageModel(lambda _: reply)
    with run_app(create_app(Workspaces(open_index(model), [index]))) as running:
        yield running


@contextmanager
def watch(browser: Browser, server: RunningServer, *, problems: list[str]) -> Iterator[tuple[BrowserContext, Page]]:
    """Open a page without its content security policy, and collect what is executed, loaded or asked elsewhere."""
    context = browser.new_context(bypass_csp=True)
    context.add_init_script(WATCH)
    context.on("request", lambda request: None if request.url.startswith(server.url) else problems.append(request.url))
    context.on("page", lambda page: problems.append(page.url) if len(context.pages) > 1 else None)
    page = context.new_page()
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.on("pageerror", lambda error: problems.append(str(error)))
    yield context, page
    context.close()


def visit(page: Page, server: RunningServer, view: str, problems: list[str]) -> None:
    """Open a view and everything that it can unfold, and collect what is in it but not of the page."""
    page.goto("about:blank")
    page.goto(f"{server.url}/{view}")
    expect(page.locator("main > *")).not_to_have_count(0)
    expect(page.locator("main [aria-busy]")).to_have_count(0)
    page.wait_for_timeout(50)
    page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
    page.evaluate(
        """document.querySelectorAll(".node, a, button").forEach((node) => {
             for (const name of ["mouseenter", "mouseover", "focus"]) node.dispatchEvent(new Event(name));
           })"""
    )
    problems.extend(f"{view}: {each}" for each in page.evaluate(FIND, OWN_TAGS.split(",")))


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_hostile_is_executed_or_loaded_in_any_view(
    browser: Browser, server: RunningServer, payload: str
) -> None:
    text, problems = quote(payload, safe=""), list[str]()
    with watch(browser, server, problems=problems) as (_, page):
        for view in (
            f"#/document?id={text}.md&start={text}&end={text}",
            f"#/document?id={text}",  # names no document: an error
            f"#/entity?name={text}",
            f"#/passage?id={text}.md%230000",
            f"#/passage?id=fact+{text}%230000&start={text}&end=9",
            f"#/ask?q=bell+{text}&retriever={text}&where={text}&as_of={text}&all={text}",
            f"#/ask?q=bell+of+Tarn+{text}&all=1&where=id+like+%22*%22",
            f"#/compare?q=bell+{text}&a=bm25&b=dense",
            f"#/compare?q=bell+{text}&a=bm25&b={text}&where={text}",
            f"#/documents?like={text}",
            f"#/documents?workspace={text}",
            f"#/{text}?{text}={text}",
            f"?{text}#/{text}",
            "#/documents",
            "#/log",
            "#/api",
            "#/entity?name=Ines%20Moreau",
            "#/ask?q=bell+of+Tarn&all=1",
        ):
            visit(page, server, view, problems)
    assert problems == []


def test_nothing_hostile_is_executed_in_dialogs_and_messages(browser: Browser, tmp_path: Path) -> None:
    problems: list[str] = []
    index = build_index(tmp_path / "kb", tuple(build_documents()))
    with (
        run_app(create_app(Workspaces(open_index(), [index]))) as server,
        watch(browser, server, problems=problems) as (_, page),
    ):
        for payload in PAYLOADS[:3]:
            visit(page, server, f"#/entity?name={quote(payload, safe='')}", problems)
            page.get_by_role("button", name="Add another name …").click()
            page.locator("dialog input").fill(f"alias {payload}")
            page.locator("dialog form button").click()
            expect(page.locator("#status")).to_contain_text("documents changed")
            problems.extend(page.evaluate(FIND, OWN_TAGS.split(",")))
            visit(page, server, f"#/document?id={quote(payload, safe='')}.md", problems)
            page.get_by_role("button", name="Remove …").click()
            problems.extend(page.evaluate(FIND, OWN_TAGS.split(",")))
            page.locator("dialog .stack button").click()
            expect(page.locator("main")).to_contain_text("documents")
            name = re.sub("[/\x00]", "", payload)[:200] + ".pdf"
            (tmp_path / name).write_bytes(b"no pdf")
            page.locator("#files").set_input_files(tmp_path / name)
            expect(page.locator(".job")).to_contain_text("failed")
            problems.extend(page.evaluate(FIND, OWN_TAGS.split(",")))
        visit(page, server, f"#/entity?name={quote(PAYLOADS[3], safe='')}", problems)
        page.get_by_role("button", name="Retract from all facts …").click()
        page.locator("dialog input").fill(PAYLOADS[0])
        problems.extend(page.evaluate(FIND, OWN_TAGS.split(",")))
        page.locator("dialog form button").click()
        expect(page.locator("tbody tr").first).to_contain_text("retract")
        problems.extend(page.evaluate(FIND, OWN_TAGS.split(",")))
    assert problems == []


def test_a_page_that_inserts_texts_as_html_is_found_out(browser: Browser, server: RunningServer) -> None:
    problems: list[str] = []

    def insert_html(route: Route) -> None:
        source = (
            route.fetch()
            .text()
            .replace(
                "element.append(child)",
                "typeof child === 'string' ? (element.innerHTML += child) : element.append(child)",
            )
        )
        route.fulfill(body=source, content_type="text/javascript")

    with watch(browser, server, problems=problems) as (_, page):
        page.route("**/dom.js", insert_html)
        visit(page, server, f"#/document?id={quote(PAYLOADS[0], safe='')}.md", problems)
    assert any("alert" in each for each in problems)
