"""Formulas as MathML, which browsers draw without a script or a network."""

import re

from latex2mathml.converter import convert

THIN = '<mspace width="0.167em" />'
# Spaces as TeX has them, which latex2mathml leaves to the browser.
SPACING = (
    # Names of functions: after a factor, and before an argument without parentheses.
    (r"(</m(?:i|n|sub|sup|subsup)>)(<mi>(?:ln|exp)</mi>)", rf"\1{THIN}\2"),
    (r"(<mi>(?:ln|exp)</mi>)(?!<mo)", rf"\1{THIN}"),
    # A sign, not a difference: after a parenthesis, a relation or a space.
    (
        r"((?:&#x00028;|&#x0003D;|&#x02264;|&#x02265;)</mo>|<mspace[^>]*/>)<mo>&#x02212;</mo>",
        r'\1<mo form="prefix">&#x02212;</mo>',
    ),
    (r"<mo>&#x0002F;</mo>", r'<mo lspace="0" rspace="0">&#x0002F;</mo>'),
    (r"<mo>&#x0221E;</mo>", r"<mi>&#x0221E;</mi>"),
    (
        r"<msub><mo>min</mo>(<mrow>.*?</mrow>|<mi>[^<]*</mi>)</msub>",
        r"<munder><mo>min</mo>\1</munder>",
    ),
)


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(inline, None),
        block_renderers=(block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(translator, node):
    translator.body.append(spaced(convert(node.astext())))
    skip(node)


def block(translator, node):
    formula = spaced(convert(node.astext().strip(), display="block"))
    translator.body.append(f'<div class="math-block">{formula}</div>')
    skip(node)


def spaced(formula):
    """Return MathML with the spaces of TeX."""
    for pattern, better in SPACING:
        formula = re.sub(pattern, better, formula)
    return formula


def skip(node):
    """Leave out the TeX source, which would be written after the formula."""
    node.children = []
