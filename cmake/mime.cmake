# SPDX-License-Identifier: Apache-2.0
# The table of media types as C, made from conf/monkey.mime at build time.
#
#   mk_mime_table(OUT)
#
# sets OUT to the path of a C file to compile into the layer that uses it:
#
#   mk_mime_table(table)
#   target_sources(mk_files PRIVATE ${table})
#
# It has those of MK_MIME_TYPES. It includes "files/mime.h", which must declare
#
#   extern const char mk_mime_builtin[];
#   extern const size_t mk_mime_builtin_len;
#
# One text, "\nhtml text/html\n...": it needs no pointers, which a relocatable program would have to pay for. The
# extensions are in lower case, sorted by bytes, each there once. A line that breaks these rules fails the build with its
# file and number.

# What MK_MIME_TYPES=common keeps: pages, their parts, and usual downloads.
set(MK_MIME_COMMON "^(7z|avif|bmp|bz2|css|csv|epub|flac|gif|gz|html?|ico|ics|ipk|jpe?g|js|json|m3u8|m4[av]|map|md|mjs|mkv|mov|mp[34]|mpd|og[agv]|\
opus|otf|pdf|png|rss|svgz?|tar|tgz|tiff?|ts|ttf|txt|vtt|wasm|wav|weba|webm|webmanifest|webp|woff2?|xhtml|xml|xz|ya?ml|zip|zst)$")

function(mk_mime_table out)
  set(table ${CMAKE_BINARY_DIR}/mime_table.c)
  set(types ${CMAKE_SOURCE_DIR}/conf/monkey.mime)
  set(only "")
  if(MK_MIME_TYPES STREQUAL "common")
    set(only ${MK_MIME_COMMON})
  endif()
  add_custom_command(OUTPUT ${table}
    COMMAND ${CMAKE_COMMAND} -DIN=${types} -DOUT=${table} "-DONLY=${only}" -P ${CMAKE_SOURCE_DIR}/cmake/mime.cmake
    DEPENDS ${types} ${CMAKE_SOURCE_DIR}/cmake/mime.cmake
    COMMENT "Making the table of media types"
    VERBATIM)
  set(${out} ${table} PARENT_SCOPE)
endfunction()

# Below: the same file as a script, `cmake -DIN=... -DOUT=... -P mime.cmake`.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
cmake_minimum_required(VERSION 3.20)

function(fail why)
  message(FATAL_ERROR "${IN}:${number}: ${why}")
endfunction()

# STRLESS compares bytes, as mk_str_cmp() does; the letters allowed below keep clear of any locale.
function(check_entry extension type)
  if(NOT extension MATCHES "^[a-z0-9][a-z0-9_+-]*$")
    fail("\"${extension}\" is not an extension in lower case")
  elseif(NOT type MATCHES "^[a-z]+/[a-z0-9][a-z0-9.+-]*$")
    fail("\"${type}\" is not a media type in lower case")
  elseif(extension STREQUAL "${last}")
    fail("${extension} is there twice")
  elseif(NOT "${last}" STRLESS extension)
    fail("${extension} belongs before ${last}: the list is sorted")
  endif()
endfunction()

set(number 0)
set(last "")
set(in_section FALSE)
set(rows "")
file(READ ${IN} text)
# What has a meaning in CMake's lists stands for nothing here but the section's brackets.
string(REGEX REPLACE "[][;\\\\]" "_" text "${text}")
string(REPLACE "\n" ";" lines "${text}")
foreach(line IN LISTS lines)
  math(EXPR number "${number} + 1")
  if(line MATCHES "^ *(#.*)?$")
    continue()
  elseif(line STREQUAL "_MIMETYPES_")
    set(in_section TRUE)
  elseif(NOT in_section)
    fail("the section [MIMETYPES] comes first")
  elseif(line MATCHES "^    ([^ ]+) +([^ ]+)$")
    set(extension "${CMAKE_MATCH_1}")
    set(type "${CMAKE_MATCH_2}")
    check_entry("${extension}" "${type}")
    set(last "${extension}")
    if(ONLY AND NOT extension MATCHES "${ONLY}")
      continue()
    endif()
    string(APPEND rows "    \"${extension} ${type}\\n\"\n")
  else()
    fail("expected four spaces, an extension and a type")
  endif()
endforeach()
if(rows STREQUAL "")
  fail("there is no type in it")
endif()

file(WRITE ${OUT} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made from conf/monkey.mime by cmake/mime.cmake. */
#include \"files/mime.h\"

const char mk_mime_builtin[] = \"\\n\"
${rows}    ;
const size_t mk_mime_builtin_len = sizeof mk_mime_builtin - 1;
")
