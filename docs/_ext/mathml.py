"""Formulas as MathML, which browsers draw without a script, a font or a network."""

from latex2mathml.converter import convert


def setup(app):
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(inline, None),
        block_renderers=(block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def inline(translator, node):
    translator.body.append(convert(node.astext()))
    skip(node)


def block(translator, node):
    formula = convert(node.astext().strip(), display="block")
    translator.body.append(f'<div class="math-block">{formula}</div>')
    skip(node)


def skip(node):
    """Leave out the TeX source, which would be written after the formula."""
    node.children = []
