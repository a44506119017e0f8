# SPDX-License-Identifier: Apache-2.0
# cmake -DFOLDER=... -DOUT=... -P embed.cmake: converts the files of the API documentation page to C, for doc.h.

# Converts a hash from hexadecimal to base64 for Content-Security-Policy; CMake has no command for base64.
function(base64 result hex)
  set(digits "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text "")
  foreach(i RANGE 0 58 6)
    string(SUBSTRING ${hex} ${i} 6 bytes)
    math(EXPR number "0x${bytes}")
    foreach(shift 18 12 6 0)
      math(EXPR digit "(${number} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 char)
      string(APPEND text ${char})
    endforeach()
  endforeach()
  string(SUBSTRING ${hex} 60 4 bytes) # 32 bytes are ten groups of three, and two bytes
  math(EXPR number "0x${bytes} << 2")
  foreach(shift 12 6 0)
    math(EXPR digit "(${number} >> ${shift}) & 63")
    string(SUBSTRING ${digits} ${digit} 1 char)
    string(APPEND text ${char})
  endforeach()
  set(${result} "${text}=" PARENT_SCOPE)
endfunction()

set(all "/* SPDX-License-Identifier: Apache-2.0 */
/* Made from duda/dev/doc by embed.cmake. */
#include \"doc/doc.h\"

")
function(embed name)
  set(hex "")
  foreach(file ${ARGN})
    file(READ ${FOLDER}/${file} bytes HEX)
    string(APPEND hex "${bytes}")
  endforeach()
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${hex}")
  string(APPEND all "static const char ${name}_bytes[] = {${bytes}};
const mk_str dev_doc_${name} = {${name}_bytes, sizeof ${name}_bytes};
")
  set(all "${all}" PARENT_SCOPE)
endfunction()
# The hash is that of the text between the tags, which consists of these files.
function(embed_hash name)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${FOLDER}/${file} bytes)
    string(APPEND text "${bytes}")
  endforeach()
  string(SHA256 hash "${text}")
  base64(hash ${hash})
  set(all "${all}const mk_str dev_doc_${name}_hash = MK_STR_INIT(\"sha256-${hash}\");
" PARENT_SCOPE)
endfunction()
embed(style doc.css)
embed_hash(style doc.css)
embed(body doc.html)
embed(script schema.js request.js doc.js)
embed_hash(script schema.js request.js doc.js)
file(WRITE ${OUT} "${all}")
