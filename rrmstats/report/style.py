"""How the page looks."""

STYLE = """
body { font: 16px/1.45 system-ui, sans-serif; color: #111; background: #fff;
  max-width: 60rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: break-word; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; border-top: 2px solid #111; border-bottom: 2px solid #111;
  margin: 0.8rem 0; font-size: 0.9rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: bold; padding: 0.3rem 0; }
th, td { padding: 0.15rem 0.7rem; vertical-align: top; }
thead th { border-bottom: 1px solid #111; text-align: right; }
thead th:first-child { text-align: left; }
tbody th { text-align: left; font-weight: normal; }
td { text-align: right; }
table.words td { text-align: left; overflow-wrap: anywhere; }
th button { font: inherit; color: inherit; background: none; border: 0; padding: 0;
  cursor: pointer; }
th button::after { content: " \\2195"; color: #666; }
th[aria-sort] button { text-decoration: underline; }
th[aria-sort="ascending"] button::after { content: " \\25B2"; }
th[aria-sort="descending"] button::after { content: " \\25BC"; }
details.fold summary { cursor: pointer; }
details.fold:not([open]) + .wide tbody tr:nth-child(n + 21) { display: none; }
figure { margin: 1rem 0 1.5rem; break-inside: avoid; }
figure svg { max-width: 100%; height: auto; display: block; }
svg * { stroke-linejoin: round; stroke-linecap: butt; }
figcaption { font-size: 0.9rem; }
@media print { body { max-width: none; margin: 0; font-size: 10pt; } h2 { break-after: avoid; }
  tr { break-inside: avoid; } .wide { overflow: visible; }
  th:not([aria-sort]) button::after { content: ""; } }
"""

PATH_STYLE = (
    STYLE
    + """
body { max-width: 90rem; }
section > p, section > ul { max-width: 60rem; }
.pair { display: grid; gap: 0.5rem;
  grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); }
.panel { min-width: 0; }
section:has(> #coefficients, > #fit) { overflow-x: auto; }
#coefficients { min-width: 56rem; } #fit { min-width: 36rem; }
button, input { font: inherit; padding: 0.1rem 0.6rem; }
#chosen { max-height: 26rem; overflow-y: auto; } #chosen button { padding: 0 0.4rem; }
#not-found { color: #a33; }
"""
)
