# SPDX-License-Identifier: Apache-2.0
# Installs the manual from `source` to `destination`, with the folders as they are in the tree, so that its links work.
# A link to a file that is not installed, such as a source file, becomes plain text.
cmake_policy(VERSION 3.21)
set(files README.md CHANGELOG.md SECURITY.md LICENSE site/monkey.svg conf/monkey.conf conf/monkey.mime)
file(GLOB_RECURSE more RELATIVE ${source} ${source}/docs/* ${source}/examples/* ${source}/plugins/*/README.md
  ${source}/plugins/*/*.conf)
list(APPEND files ${more})

file(REMOVE_RECURSE ${manual})
foreach(file IN LISTS files)
  if(EXISTS ${source}/${file})
    configure_file(${source}/${file} ${manual}/${file} COPYONLY)
  endif()
endforeach()

# Brackets and semicolons have a meaning in CMake's lists.
string(ASCII 1 open)
string(ASCII 2 close)
string(ASCII 3 semicolon)

function(drop_link variable target)
  string(REGEX REPLACE "([][+.*?^$()|\\\\])" "\\\\\\1" pattern "${target}")
  string(REGEX REPLACE "${open}([^${open}${close}]*)${close}\\(${pattern}(#[^)]*)?\\)" "\\1" result "${${variable}}")
  set(${variable} "${result}" PARENT_SCOPE)
endfunction()

function(mend_page page)
  file(READ ${page} text)
  string(REPLACE "[" "${open}" text "${text}")
  string(REPLACE "]" "${close}" text "${text}")
  string(REPLACE ";" "${semicolon}" text "${text}")
  string(REGEX MATCHALL "${close}\\([^)# ]+" links "${text}")
  get_filename_component(folder ${page} DIRECTORY)
  list(REMOVE_DUPLICATES links)
  foreach(link IN LISTS links)
    string(REPLACE "${close}(" "" target "${link}")
    if(NOT target MATCHES "^[a-z][a-z0-9+.-]*:" AND NOT EXISTS "${folder}/${target}")
      drop_link(text "${target}")
    endif()
  endforeach()
  string(REPLACE "${open}" "[" text "${text}")
  string(REPLACE "${close}" "]" text "${text}")
  string(REPLACE "${semicolon}" ";" text "${text}")
  file(WRITE ${page} "${text}")
endfunction()

file(GLOB_RECURSE pages ${manual}/*.md)
foreach(page IN LISTS pages)
  mend_page(${page})
endforeach()
file(INSTALL ${manual}/ DESTINATION ${destination})
