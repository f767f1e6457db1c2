"""The style sheet of all pages, light or dark as the reader's system asks for."""

from topoplace.report.page.plots import NUM_COLOURS

# Middle lightness, so that lines and points stand out on white and on near-black.
_METHOD_COLOURS = (
    "#3b82f6", "#e8731a", "#1f9d61", "#d6409f", "#8b5cf6",
    "#b08900", "#0899ad", "#e5484d", "#7d8590", "#a1724e",
)  # fmt: skip
assert len(_METHOD_COLOURS) == NUM_COLOURS

STYLE = (
    """
:root{color-scheme:light dark;--paper:#fff;--ink:#1c2024;--soft:#60646c;--rule:#d9dce1;
--panel:#f6f7f9;--link:#0b5cad;--best:29,158,97;--worst:229,72,77}
@media (prefers-color-scheme:dark){:root{--paper:#15171a;--ink:#e6e8eb;--soft:#9ba1a8;
--rule:#34383d;--panel:#1d2024;--link:#7ab7ff}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem;max-width:76rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .2rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
a{color:var(--link)}p{margin:.4rem 0}.note{color:var(--soft);font-size:.88rem;max-width:60rem}
.wide{overflow-x:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.88rem}
th,td{padding:.22rem .65rem;border-bottom:1px solid var(--rule);text-align:left;white-space:nowrap}
th{color:var(--soft);font-weight:600}
.num{text-align:right}tr.win td:first-child,td.win{font-weight:700}
td.gap{background:rgba(var(--worst),var(--far))}td.gap.zero{background:rgba(var(--best),.22)}
details{border:1px solid var(--rule);border-radius:6px;margin:.5rem 0;background:var(--panel)}
summary{padding:.45rem .8rem;cursor:pointer;font-weight:600}
summary span{color:var(--soft);font-weight:400;margin-left:.7rem}
details>div{padding:.2rem .8rem .8rem}
.gallery{display:flex;flex-wrap:wrap;gap:1rem;margin-top:.8rem}
figure{margin:0}figcaption{font-size:.82rem;color:var(--soft);margin-top:.25rem}
figure img{display:block;image-rendering:pixelated;border:1px solid var(--rule);background:
#8b909733;max-width:100%}
figure.drawn img{image-rendering:auto;background:#fff;width:100%;height:auto}
.plot{display:block;width:100%;max-width:62rem;height:auto;overflow:visible}
svg text{font:12px system-ui,sans-serif;fill:var(--ink)}svg .title,svg .median{fill:var(--soft)}
.grid{stroke:var(--rule);stroke-width:1}.tick{stroke:var(--ink);stroke-width:2}
.dot{fill:var(--m);fill-opacity:.55;stroke:var(--m);stroke-opacity:.9}
.line{fill:none;stroke:var(--m);stroke-width:2.2}.line:hover{stroke-width:4}
.dash1{stroke-dasharray:7 4}.dash2{stroke-dasharray:2 3}
.legend span{display:inline-flex;align-items:center;gap:.4rem;margin-right:1.1rem;
font-size:.88rem}
.swatch{display:inline-block;width:.85rem;height:.85rem;border:1px solid var(--soft)}
pre{background:var(--panel);border:1px solid var(--rule);border-radius:6px;padding:.8rem;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.82rem}
""".strip()
    + "\n"
    + "".join(f".m{idx}{{--m:{colour}}}" for idx, colour in enumerate(_METHOD_COLOURS))
)
