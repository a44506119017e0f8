/* SPDX-License-Identifier: Apache-2.0 */
/* The style sheets and icons. They are part of each page, so that browsers send no further requests. */
#include "listing.h"

#define ICON     "url(\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 24 24'>"
#define ICON_END "</svg>\")"

#define BANANA                                                                                               \
    "<path fill='%23ffd04a' d='M18 2c2 9-3 18-15 18-1 0-2 2-1 2.6 12 3 22-6 19-20z'/>"                       \
    "<path fill='%236a4530' d='M17 1h4l.5 3-4 .5zM1 20.5l2.5-.5-.5 3-2-.5z'/>"                               \
    "<path fill='none' stroke='%23d99a1e' stroke-width='1.2' d='M19 5c1 8-4 15-14 15.5'/>"

#define PAPER                                                                                                \
    "<path fill='%23cbb69f' d='M6 2h8l5 5v13a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2z'/>"              \
    "<path fill='%238f7a66' d='M14 2l5 5h-5z'/>"

#define FRAME(colour) "<rect x='2' y='4' width='20' height='16' rx='2' fill='%23" colour "'/>"

#define FOLDER                                                                                               \
    "<path fill='%23e0a526' d='M2 6a2 2 0 0 1 2-2h5l2 3h9a2 2 0 0 1 2 2v9a2 2 0 0 1-2 2H4a2 2 0 0 "          \
    "1-2-2z'/>"                                                                                              \
    "<path fill='%23ffd04a' d='M2 10h20v8a2 2 0 0 1-2 2H4a2 2 0 0 1-2-2z'/>"

#define UP                                                                                                   \
    "<path fill='none' stroke='%23b08d57' stroke-width='2.5' stroke-linecap='round' "                        \
    "stroke-linejoin='round' d='M20 20v-6a4 4 0 0 0-4-4H5m5-6-6 6 6 6'/>"

#define SHEET                                                                                                \
    PAPER                                                                                                    \
    "<path stroke='%238f7a66' stroke-width='1.5' d='M7 11h8M7 14h8M7 17h5'/>"

#define IMAGE                                                                                                \
    FRAME("4f9d6c")                                                                                          \
    "<circle cx='8' cy='9' r='2' fill='%23ffe08a'/>"                                                         \
    "<path fill='%23d8f0df' d='M4 18l5-6 3.5 4 3-3.5L20 18z'/>"

#define VIDEO                                                                                                \
    FRAME("b0664a")                                                                                          \
    "<path fill='%23ffe9dc' d='M10 8.5v7l6-3.5z'/>"

#define AUDIO                                                                                                \
    "<circle cx='12' cy='12' r='10' fill='%237d74b8'/>"                                                      \
    "<path fill='%23eeebff' d='M16 5v9.5a2.5 2.5 0 1 1-1.5-2.3V8.5l-4 1v6.5a2.5 2.5 0 1 1-1.5-2.3V6.8z'/>"

#define PACK                                                                                                 \
    "<path fill='%23a87b4f' d='M3 8h18v11a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z'/>"                                 \
    "<path fill='%23c89b6c' d='M5 3h14l2 5H3z'/>"                                                            \
    "<path fill='%23f3dfc4' d='M10.5 3h3v9h-3z'/>"

const mk_str dirlisting_theme_guineo = MK_STR_INIT(
    "<link rel=\"icon\" href=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' "
    "viewBox='0 0 24 24'>" BANANA "</svg>\">\n<style>\n"
    ":root{color-scheme:light dark;--ground:#fdf9f2;--card:#fffefb;--line:#eadfce;--ink:#2c2018;"
    "--soft:#6d5a4a;--accent:#8a4b12;--seen:#6b4387;--hover:#fff3d1}\n"
    "@media(prefers-color-scheme:dark){:root{--ground:#17110d;--card:#211913;--line:#3a2d23;--ink:#f5eadb;"
    "--soft:#bda893;--accent:#ffc46b;--seen:#cfaee8;--hover:#33271c}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0;background:var(--ground);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"
    "\"Segoe UI\",Roboto,\"Noto Sans\",\"DejaVu Sans\",sans-serif;-webkit-text-size-adjust:100%;"
    "text-size-adjust:100%}\n"
    "main{max-width:60rem;margin:0 auto;padding:clamp(1.25rem,4vw,3rem) clamp(.75rem,3vw,1.5rem)}\n"
    "h1{margin:0 0 1.25rem;padding:.15em 0 .15em 1.7em;"
    "font-size:clamp(1.25rem,3.5vw,1.75rem);line-height:1.3;letter-spacing:-.01em;"
    "overflow-wrap:anywhere;white-space:pre-wrap;background:0 .2em/1.35em no-repeat " ICON BANANA ICON_END
    "}\n"
    "h1>span{color:var(--soft);font-weight:400}\n"
    "a{color:var(--accent);text-decoration:none}\n"
    "h1 a[aria-current]{color:var(--ink);font-weight:600}\n"
    "a:hover{text-decoration:underline;text-underline-offset:.2em}\n"
    "a:focus-visible{outline:3px solid var(--accent);outline-offset:-3px;border-radius:.4rem}\n"
    ".note{margin:0 0 1rem;padding:.6rem 1rem;border-left:.3rem solid #ffd04a;background:var(--card)}\n"
    "form{margin:0 0 1rem;display:flex;flex-wrap:wrap;gap:.5rem;align-items:center}\n"
    "input,button{font:inherit;max-width:100%;min-height:2.75rem}\n"
    "table{width:100%;border-collapse:separate;border-spacing:0;background:var(--card);"
    "border:1px solid var(--line);border-radius:.8rem;overflow:hidden}\n"
    "th,td{padding:0 1rem;text-align:left;vertical-align:top;font-weight:400}\n"
    "th{vertical-align:baseline;color:var(--soft);font-size:.875rem;border-bottom:1px solid var(--line)}\n"
    "th a,td{padding-top:.5rem;padding-bottom:.5rem}\n"
    "th a{display:inline-block;color:inherit;text-decoration:underline;text-decoration-color:var(--line);"
    "text-underline-offset:.25em}\n"
    "th a:hover{text-decoration-color:currentColor}\n"
    "th a::after{content:\" \\2195\";opacity:.6}\n"
    "th[aria-sort] a{color:var(--ink);font-weight:600}\n"
    "th[aria-sort] a::after{opacity:1}\n"
    "th[aria-sort=ascending] a::after{content:\" \\2191\"}\n"
    "th[aria-sort=descending] a::after{content:\" \\2193\"}\n"
    "tr+tr td{border-top:1px solid var(--line)}\n"
    "tbody tr:hover{background:var(--hover)}\n"
    "td.name{padding:0 0 0 3rem;width:100%;overflow-wrap:anywhere;white-space:pre-wrap;"
    "background:1.1rem .62rem/1.25rem no-repeat}\n"
    "td.name a{display:block;padding:.5rem 0}\n"
    "td.name:not(.up) a:visited{color:var(--seen)}\n"
    ".size,.time{text-align:right;white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}\n"
    "td.folder{background-image:" ICON FOLDER ICON_END "}\n"
    "td.up{background-image:" ICON UP ICON_END "}\n"
    "td.file{background-image:" ICON SHEET ICON_END "}\n"
    "td.image{background-image:" ICON IMAGE ICON_END "}\n"
    "td.video{background-image:" ICON VIDEO ICON_END "}\n"
    "td.audio{background-image:" ICON AUDIO ICON_END "}\n"
    "td.pack{background-image:" ICON PACK ICON_END "}\n"
    "footer{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;padding:1rem .25rem;color:var(--soft);"
    "font-size:.875rem}\n"
    "footer span+a{margin-left:auto}\n"
    "@media(max-width:34rem){td,th{padding-left:.5rem;padding-right:.5rem}td.name{padding-left:2.4rem;"
    "background-position:.7rem .62rem}.size,.time{font-size:.8125rem;"
    "line-height:1.5rem}time span{display:block;margin-top:-.4rem}table{border-radius:.6rem}}\n"
    "@media print{body,table{background:#fff;color:#000}}\n"
    "</style>\n");

const mk_str dirlisting_theme_plain = MK_STR_INIT(
    "<style>\n"
    ":root{color-scheme:light dark}\n"
    "body{max-width:60rem;margin:1.5rem auto;padding:0 1rem;font:1rem/1.45 ui-monospace,Menlo,Consolas,"
    "\"DejaVu Sans Mono\",monospace;-webkit-text-size-adjust:100%;text-size-adjust:100%}\n"
    "h1{margin:0 0 1rem;font-size:1.25rem;overflow-wrap:anywhere;white-space:pre-wrap}\n"
    "table{width:100%;border-collapse:collapse}\n"
    "th,td{padding:.2rem 0;text-align:left;vertical-align:top}\n"
    "th{font-weight:400;border-bottom:1px solid}\n"
    "th a::after{content:\" \\2195\"}\n"
    "th[aria-sort] a{font-weight:700}\n"
    "th[aria-sort=ascending] a::after{content:\" \\2191\"}\n"
    "th[aria-sort=descending] a::after{content:\" \\2193\"}\n"
    "td.name{width:100%;overflow-wrap:anywhere;white-space:pre-wrap}\n"
    ".size,.time{padding-left:1.5rem;text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
    "a{text-decoration:none}\n"
    "h1 a[aria-current]{color:inherit}\n"
    "a:hover,a:focus-visible{text-decoration:underline}\n"
    "a:focus-visible{outline:2px solid;outline-offset:2px}\n"
    "footer{display:flex;flex-wrap:wrap;gap:.25rem 1.25rem;margin-top:1rem;padding-top:.5rem;border-top:1px "
    "solid}\n"
    "@media(max-width:34rem){body{font-size:.875rem}.size,.time{padding-left:.75rem}time "
    "span{display:block}}\n"
    "</style>\n");
