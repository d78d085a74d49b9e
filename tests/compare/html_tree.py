"""A page as a tree; a tag that is not closed, or closed twice, is an error."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}


@dataclass
class Node:
    tag: str
    attributes: dict[str, str | None] = field(default_factory=dict)
    children: list = field(default_factory=list)

    @property
    def text(self):
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag=None, **attributes):
        """Nodes within, in the order of the page; ``class_`` is one of a node's classes."""
        for child in self.children:
            if isinstance(child, Node):
                if (tag is None or child.tag == tag) and all(child.has(name, value) for name, value in attributes.items()):
                    yield child
                yield from child.all(tag, **attributes)

    def one(self, tag=None, **attributes):
        (result,) = self.all(tag, **attributes)
        return result

    def has(self, name, value):
        if name == "class_":
            return value in (self.attributes.get("class") or "").split()
        return self.attributes.get(name.replace("_", "-")) == value


class _Builder(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Node("page")]

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), f"line {self.getpos()[0]}: <{tag}> has an attribute twice"
        node = Node(tag, dict(attrs))
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"line {self.getpos()[0]}: </{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parsed(html):
    builder = _Builder()
    builder.feed(html)
    builder.close()
    assert [node.tag for node in builder.open] == ["page"], "some tags are not closed"
    return builder.open[0]
