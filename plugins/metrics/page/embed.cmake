# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -DOUT=... -P embed.cmake: converts the files of the live page to C, for page.h: without indentation,
# empty lines and comment lines, and compressed by gzip.
function(embed name file)
  file(READ ${FOLDER}/${file} source)
  string(REGEX REPLACE "(\n[ \n]*(//[^\n]*)?)+\n *" "\n" source "\n${source}")
  string(REGEX REPLACE "\n +" "\n" source "${source}")
  string(REGEX REPLACE "^\n" "" source "${source}")
  file(WRITE ${OUT}.${file} "${source}")
  file(ARCHIVE_CREATE OUTPUT ${OUT}.${file}.gz PATHS ${OUT}.${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
  file(READ ${OUT}.${file}.gz bytes HEX)
  file(REMOVE ${OUT}.${file} ${OUT}.${file}.gz)
  # Bytes 4 to 7 are the time of compression, which would make each build different.
  string(SUBSTRING "${bytes}" 0 8 head)
  string(SUBSTRING "${bytes}" 16 -1 rest)
  set(bytes "${head}00000000${rest}")
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(text "static const char ${name}_bytes[] = {${bytes}};
const mk_str metrics_page_${name} = {${name}_bytes, sizeof ${name}_bytes};
" PARENT_SCOPE)
endfunction()

set(all "/* SPDX-License-Identifier: Apache-2.0 */
/* Made from plugins/metrics/page by embed.cmake. */
#include \"page.h\"

")
embed(html live.html)
string(APPEND all "${text}")
embed(style live.css)
string(APPEND all "${text}")
embed(script live.js)
string(APPEND all "${text}")
file(WRITE ${OUT} "${all}")
