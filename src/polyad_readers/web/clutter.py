"""Detects notes, and elements of a page that are not content: navigation, permalinks, line numbers, banners."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from resiliparse.parse.html import DOMNode, ElementNode, HTMLTree

from polyad.readers.text.plain_text import to_single_line
from polyad_readers.web.inline import get_start, is_reading

_TAGS = frozenset(
    [
        *("annotation", "annotation-xml", "audio", "button", "canvas", "datalist", "embed", "head", "iframe", "map"),
        *("nav", "progress", "rp", "script", "style", "svg", "template", "title", "video"),
    ]
)
_TEXTLESS_TAGS = frozenset({"head", "script", "style", "svg", "template", "title"})
"""Tags without text that a browser shows."""

_ROLES = frozenset(
    [
        *("alertdialog", "banner", "contentinfo", "dialog", "directory", "doc-toc", "menu", "menubar", "navigation"),
        *("search", "toolbar"),
    ]
)
_CONTENT_ROLES = frozenset({"main", "article", "document"})

_CONTENT_TAGS = frozenset({"html", "body", "main", "article", "thead", "tbody", "tr", "th"})
_RANKS = ("h1", "h2", "h3")

_CLUTTER = """
back-to-top backlink bottom-of-page breadcrumb breadcrumbs catlinks content-icon-container contents-sidebar
cookie-banner cookie-bar cookie-consent cookie-notice cookies copyright copyright-footer cp-entries-printindex
devsite-article-meta docnav edit-link edit-page edit-this-page editsection fn-entries-printindex footer-nav
footnote-back global-nav gutter header hideme index-cp index-fn index-ky index-pg index-tp index-vr indexdiv indextable
jump-to-nav ky-entries-printindex line-number line-numbers lineno linenodiv linenos linenumber linenumbers
list-of-equations list-of-examples list-of-figures list-of-tables md-content__button md-footer md-header md-nav
md-sidebar md-skip md-source-file md-tabs mobile-header mw-editsection mw-jump-link nav nav-panel navbar navbox
navfooter navheader navigation navlinks nextprev noprint on-this-page page-nav page-toc pagination pagination-nav
pg-entries-printindex prev-next prev-next-area previous-next prevnext printfooter related related-pages rightside
rouge-gutter rst-footer-buttons rst-versions sharedaddy sidebar-drawer site-footer site-header skip-link skip-nav
skip-to-content skiplink skiptocontent sphinxfooter sphinxsidebar sphinxsidebarwrapper spirit-nav sr-only sub-nav
table-of-contents theme-doc-breadcrumbs theme-doc-toc-desktop theme-doc-toc-mobile theme-doc-version-badge
theme-edit-this-page theme-last-updated toc toc-drawer toc_container tocwrapper top-nav topnav tp-entries-printindex
visually-hidden vr-entries-printindex wy-breadcrumbs wy-nav-side wy-nav-top
"""
_CLASSES = frozenset(_CLUTTER.split())
"""Classes and ids that documentation generators give to navigation, alphabetical indexes and other site elements."""

_IDS = _CLASSES.union(("banner", "cookie", "footer", "nav-path", "side-nav", "sidebar", "siteSub", "skip", "toctitle"))

_MISTAKABLE = frozenset(
    ["banner", "copyright", "footer", "header", "nav", "navbar", "navigation", "related", "sidebar", "toc"]
)
"""Classes and ids of site elements that authors also give to content."""

_SENTENCE = re.compile(r"(?!\s*(?:\xa9|copyright\b))(?:\S+\s+){3,}?\S*[.!?:\u3002](?:\s|$)", re.IGNORECASE)
_PANEL = re.compile(r"tab|accordion|collaps|carousel|slide|step|panel|spoiler|math", re.IGNORECASE)
"""Classes of elements that a click shows, and of formulas of which browsers show a picture."""

_INVISIBLE = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_NOTICE = re.compile(r"script|browser|enable|cookie|plug-?in|viewer|flash player|download", re.IGNORECASE)
"""Words of notices that a script, a plug-in or a cookie is missing."""

_SHOWING_ATTRIBUTES = {"dialog": "open", "option": "selected"}
"""Elements that are hidden without an attribute."""

_NOTES = frozenset(
    [
        *("admonition", "admonitionblock", "alert", "attention", "callout", "caution", "danger", "hint", "important"),
        *("markdown-alert", "note", "seealso", "theme-admonition", "tip", "warning"),
    ]
)
_PERMALINKS = frozenset({"¶", "#", "§", "🔗", "⚓", "∞", "", "\u200b"})
_PERMALINK_CLASSES = frozenset(
    {"anchor-link", "hash-link", "header-anchor", "headerlink", "heading-anchor", "permalink"}
)
_QUOTING = frozenset({"blockquote", "figure", "aside"})


class ClutterDetector:
    """Detects the elements of an HTML page that are not content, such as navigation.

    An element that contains the main content, or the first heading of the highest rank, is never clutter by its class.

    Attributes:
        texts: Texts of the removed elements.
    """

    def __init__(self, tree: HTMLTree) -> None:
        self.texts: list[str] = []
        self._content_nodes: set[DOMNode] = set()
        self._is_below_heading = False
        main_nodes = (
            [tree.body.query_selector(name) for name in ("main", "[role=main]", "article")] if tree.body else []
        )
        headings = (tree.body.query_selector(name) for name in _RANKS) if tree.body else ()
        for content_node in (*main_nodes, next((heading for heading in headings if heading), None)):
            node: DOMNode | None = content_node
            while node is not None and node not in self._content_nodes:
                self._content_nodes.add(node)
                node = node.parent

    def remove(self, node: ElementNode) -> bool:
        """Return whether an HTML element is clutter, and add its visible text to ``texts``."""
        if not self.is_clutter(node):
            return False
        text = to_single_line(node.text or "") if node.tag not in _TEXTLESS_TAGS else ""
        if any(map(str.isalnum, text)):
            self.texts.append(text)
        return True

    def is_clutter(self, node: ElementNode) -> bool:
        """Return whether an HTML element, with its children, is not content but, for example, navigation or hidden.

        The elements of a page have to be passed in their order.
        """
        tag = node.tag or ""
        self._is_below_heading |= tag in _RANKS or tag in ("main", "article")
        attributes = {name: node.getattr(name) or "" for name in node.attrs}  # most elements have one or none
        if tag in _TAGS or _is_hidden(node, attributes, is_content=node in self._content_nodes):
            return True
        if tag == "a":
            return _is_permalink(node)
        role = attributes.get("role", "")
        if role in _ROLES:
            return node not in self._content_nodes
        if role in _CONTENT_ROLES or node in self._content_nodes or tag in _CONTENT_TAGS:
            return False
        if tag == "footer":
            return node.parent is None or node.parent.tag not in _QUOTING
        names = _CLASSES.intersection(attributes.get("class", "").split()) | _IDS.intersection(
            [attributes.get("id", "")]
        )
        return bool(names) and not (names <= _MISTAKABLE and self._is_below_heading and _is_prose(node))


def is_note(node: ElementNode) -> bool:
    """Return whether an HTML element is a note, warning or tip, whose text belongs to the surrounding section."""
    return _get_attribute(node, "role") == "note" or not _NOTES.isdisjoint(_get_classes(node))


def is_main(node: ElementNode) -> bool:
    """Return whether the markup marks an element as the main content of the page, as ``<main>`` does."""
    return node.tag == "main" or _get_attribute(node, "role") == "main"


def _is_permalink(node: ElementNode) -> bool:
    """Return whether a link is a permalink: a mark beside a heading that points to this heading."""
    if not _PERMALINK_CLASSES.isdisjoint(_get_classes(node)):
        return True
    child = node.first_child
    if child is not None and (child.next is not None or child.tag != "#text"):
        return False
    text = (child.value or "").strip() if child else ""
    return _get_attribute(node, "href").startswith("#") and text in _PERMALINKS


def _is_prose(node: ElementNode) -> bool:
    """Return whether an HTML element has sentences without links, and is not the last element of the page."""
    is_last = node.next_element is None and node.parent is not None and node.parent.tag == "body"
    first = node.first_element_child
    has_heading = first is not None and re.fullmatch("h[1-6]", first.tag or "") is not None
    below = first.next_element if first is not None and has_heading else None  # a heading may link to the contents
    text, has_link = get_start(below or node)
    return not is_last and not has_link and _SENTENCE.match(text) is not None


def _is_hidden(node: ElementNode, attributes: Mapping[str, str], *, is_content: bool) -> bool:
    """Return whether an HTML element is permanently hidden; content of unselected tabs is not.

    An element that contains the main content is hidden only until a script has run.
    """
    tag = node.tag
    if attribute := _SHOWING_ATTRIBUTES.get(tag or ""):
        return attribute not in attributes
    if tag in ("noscript", "object"):  # what browsers show instead of a script or another file
        text = get_start(node)[0]
        return (tag == "noscript" and not text.strip()) or _NOTICE.search(text) is not None
    if tag == "rt":
        return is_reading(node)
    if not attributes:
        return False
    names, is_aria_hidden = attributes.get("class", ""), attributes.get("aria-hidden") == "true"
    if attributes.get("role") == "tabpanel" or _PANEL.search(names):
        return is_aria_hidden and "katex" in names
    if attributes.get("hidden", "until-found") != "until-found":
        return True
    is_invisible = _INVISIBLE.search(attributes.get("style", "")) is not None
    return is_aria_hidden or (is_invisible and not is_content)


def _get_classes(node: ElementNode) -> Iterator[str]:
    return iter(_get_attribute(node, "class").split())


def _get_attribute(node: ElementNode, name: str) -> str:
    return node.getattr(name) or ""
