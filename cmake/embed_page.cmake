# SPDX-License-Identifier: Apache-2.0
# mk_embed_page(OUT FOLDER PREFIX [GZIP] NAME=FILE...): converts files of a page to the C file OUT, which defines
# `const mk_str PREFIX_NAME` for each and includes FOLDER/../page.h: without indentation, empty lines and comment lines, and with
# GZIP compressed. The build runs this file as a script, with these values as OUT, FOLDER, PREFIX, GZIP and FILES.
function(mk_embed_page out folder prefix)
  cmake_parse_arguments(arg "GZIP" "" "" ${ARGN})
  set(depends "")
  foreach(file IN LISTS arg_UNPARSED_ARGUMENTS)
    string(REGEX REPLACE "^[^=]+=" "${folder}/" path ${file})
    list(APPEND depends ${path})
  endforeach()
  list(JOIN arg_UNPARSED_ARGUMENTS "," files)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DFOLDER=${folder} -DPREFIX=${prefix} -DGZIP=${arg_GZIP} -DFILES=${files}
      -P ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
    DEPENDS ${depends} ${CMAKE_SOURCE_DIR}/cmake/embed_page.cmake
    COMMENT "Embedding the page ${prefix}"
    VERBATIM)
endfunction()

# Returns the bytes of the file in hexadecimal.
function(read_page_file result file)
  file(READ ${FOLDER}/${file} source)
  string(REGEX REPLACE "(\n[ \n]*(//[^\n]*)?)+\n *" "\n" source "\n${source}")
  string(REGEX REPLACE "\n +" "\n" source "${source}")
  string(REGEX REPLACE "^\n" "" source "${source}")
  file(WRITE ${OUT}.${file} "${source}")
  if(GZIP)
    file(ARCHIVE_CREATE OUTPUT ${OUT}.${file}.gz PATHS ${OUT}.${file} FORMAT raw COMPRESSION GZip COMPRESSION_LEVEL 9)
    file(READ ${OUT}.${file}.gz bytes HEX)
    # Bytes 4 to 7 are the time of compression, which would make each build different.
    string(SUBSTRING "${bytes}" 0 8 head)
    string(SUBSTRING "${bytes}" 16 -1 rest)
    set(bytes "${head}00000000${rest}")
  else()
    file(READ ${OUT}.${file} bytes HEX)
  endif()
  file(REMOVE ${OUT}.${file} ${OUT}.${file}.gz)
  set(${result} "${bytes}" PARENT_SCOPE)
endfunction()

function(write_page)
  set(all "/* SPDX-License-Identifier: Apache-2.0 */\n/* Made by cmake/embed_page.cmake. */\n#include \"page.h\"\n\n")
  string(REPLACE "," ";" files "${FILES}")
  foreach(entry IN LISTS files)
    string(REGEX MATCH "^([^=]+)=(.+)$" entry ${entry})
    set(name ${CMAKE_MATCH_1})
    read_page_file(bytes ${CMAKE_MATCH_2})
    string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
    string(APPEND all "static const char ${name}_bytes[] = {${bytes}};
const mk_str ${PREFIX}_${name} = {${name}_bytes, sizeof ${name}_bytes};
")
  endforeach()
  file(WRITE ${OUT} "${all}")
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
  write_page()
endif()
