"""Detects elements of a page that are not content (navigation, permalinks, line numbers, banners), and notes."""

from __future__ import annotations

from collections.abc import Iterator

from resiliparse.parse.html import DOMNode, ElementNode, HTMLTree

_TAGS = frozenset(
    [
        *("audio", "button", "canvas", "datalist", "dialog", "embed", "head", "iframe", "input", "map", "nav"),
        *("noscript", "object", "option", "progress", "rp", "script", "select", "style", "svg", "template", "textarea"),
        *("title", "video"),
    ]
)
_ROLES = frozenset(
    [
        *("alertdialog", "banner", "contentinfo", "dialog", "directory", "doc-toc", "menu", "menubar", "navigation"),
        *("search", "toolbar"),
    ]
)
_CONTENT_ROLES = frozenset({"main", "article", "document"})

_NEVER = frozenset({"html", "body", "main", "article", "thead", "tbody", "tr", "th"})
_RANKS = ("h1", "h2", "h3")

_CLUTTER = """
back-to-top backlink bottom-of-page breadcrumb breadcrumbs catlinks content-icon-container contents-sidebar
cookie-banner cookie-bar cookie-consent cookie-notice cookies copyright copyright-footer devsite-article-meta docnav
edit-link edit-page edit-this-page editsection footer-nav footnote-back global-nav gutter header hideme jump-to-nav
line-number line-numbers lineno linenodiv linenos linenumber linenumbers list-of-equations list-of-examples
list-of-figures list-of-tables md-content__button md-footer md-header md-nav md-sidebar md-skip md-source-file md-tabs
mobile-header mw-editsection mw-jump-link nav nav-panel navbar navbox navfooter navheader navigation navlinks nextprev
noprint on-this-page page-nav page-toc pagination pagination-nav prev-next prev-next-area previous-next prevnext
printfooter related related-pages rightside rouge-gutter rst-footer-buttons rst-versions sharedaddy sidebar-drawer
site-footer site-header skip-link skip-nav skip-to-content skiplink skiptocontent sphinxfooter sphinxsidebar
sphinxsidebarwrapper spirit-nav sr-only sub-nav table-of-contents theme-doc-breadcrumbs theme-doc-toc-desktop
theme-doc-toc-mobile theme-doc-version-badge theme-edit-this-page theme-last-updated toc toc-drawer toc_container
tocwrapper top-nav topnav visually-hidden wy-breadcrumbs wy-nav-side wy-nav-top
"""
_CLASSES = frozenset(_CLUTTER.split())
"""Classes and ids that the generators of documentation give to what surrounds a text."""

_IDS = _CLASSES | {
    "banner",
    "cookie",
    "footer",
    "nav-path",
    "side-nav",
    "sidebar",
    "siteSub",
    "jump-to-nav",
    "skip",
    "toctitle",
}

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


class Clutter:
    """Detects elements of a page that are not content.

    What holds the main content, or the first heading of the highest rank, is never taken for clutter by its class.
    """

    def __init__(self, tree: HTMLTree) -> None:
        self._kept: set[DOMNode] = set()
        found = [tree.body.query_selector(name) for name in ("main", "[role=main]", "article")] if tree.body else []
        headings = (tree.body.query_selector(name) for name in _RANKS) if tree.body else ()
        for kept in (*found, next((heading for heading in headings if heading), None)):
            node: DOMNode | None = kept
            while node is not None and node not in self._kept:
                self._kept.add(node)
                node = node.parent

    def holds(self, node: ElementNode) -> bool:
        """Return whether an element, including its children, is not content."""
        tag = node.tag
        if tag in _TAGS or _attribute(node, "aria-hidden") == "true" or _is_hidden(node):
            return True
        if tag == "a":
            return _is_permalink(node)
        role = _attribute(node, "role")
        if role in _ROLES:
            return node not in self._kept
        if role in _CONTENT_ROLES or node in self._kept or tag in _NEVER:
            return False
        if tag == "footer":
            return node.parent is None or node.parent.tag not in _QUOTING
        return not _CLASSES.isdisjoint(_classes(node)) or _attribute(node, "id") in _IDS


def is_note(node: ElementNode) -> bool:
    """Return whether an element is a note, warning or tip, whose text belongs to the surrounding section."""
    return _attribute(node, "role") == "note" or not _NOTES.isdisjoint(_classes(node))


def is_main(node: ElementNode) -> bool:
    """Return whether the page marks an element as its main content."""
    return node.tag == "main" or _attribute(node, "role") == "main"


def _is_permalink(node: ElementNode) -> bool:
    if not _PERMALINK_CLASSES.isdisjoint(_classes(node)):
        return True
    return _attribute(node, "href").startswith("#") and _own_text(node) in _PERMALINKS


def _own_text(node: ElementNode) -> str:
    """The text of an element that holds nothing else; otherwise a letter that stands for what it holds."""
    child = node.first_child
    if child is None:
        return ""
    return (child.value or "").strip() if child.next is None and child.tag == "#text" else "x"


def _is_hidden(node: ElementNode) -> bool:
    """Return whether an element is permanently hidden; the content of unselected tabs is not."""
    return (
        node.hasattr("hidden")
        and _attribute(node, "role") != "tabpanel"
        and _attribute(node, "hidden") != "until-found"
    )


def _classes(node: ElementNode) -> Iterator[str]:
    return iter(_attribute(node, "class").split())


def _attribute(node: ElementNode, name: str) -> str:
    return node.getattr(name) or ""
