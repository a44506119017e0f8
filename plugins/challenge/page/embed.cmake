# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -DOUT=... -P embed.cmake: converts the page to C, for page.h, without indentation, empty lines and comment lines.
function(embed name file)
  file(READ ${FOLDER}/${file} source)
  string(REGEX REPLACE "(\n[ \n]*(//[^\n]*)?)+\n *" "\n" source "\n${source}")
  string(REGEX REPLACE "\n +" "\n" source "${source}")
  string(REGEX REPLACE "^\n" "" source "${source}")
  file(WRITE ${OUT}.${file} "${source}")
  file(READ ${OUT}.${file} bytes HEX)
  file(REMOVE ${OUT}.${file})
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(text "static const char ${name}_bytes[] = {${bytes}};
const mk_str challenge_page_${name} = {${name}_bytes, sizeof ${name}_bytes};
" PARENT_SCOPE)
endfunction()

set(all "/* SPDX-License-Identifier: Apache-2.0 */
/* Made from plugins/challenge/page by embed.cmake. */
#include \"page.h\"

")
embed(html page.html)
string(APPEND all "${text}")
embed(script page.js)
string(APPEND all "${text}")
file(WRITE ${OUT} "${all}")
