# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -DOUT=... -P embed.cmake: converts the files of the API documentation page to C, for doc.h.
function(embed name file)
  file(READ ${FOLDER}/${file} bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  set(text "static const char ${name}_bytes[] = {${bytes}};
const mk_str dev_doc_${name} = {${name}_bytes, sizeof ${name}_bytes};
" PARENT_SCOPE)
endfunction()

set(all "/* SPDX-License-Identifier: Apache-2.0 */
/* Made from duda/dev/doc by embed.cmake. */
#include \"doc/doc.h\"

")
embed(style doc.css)
string(APPEND all "${text}")
embed(script doc.js)
string(APPEND all "${text}")
file(WRITE ${OUT} "${all}")
