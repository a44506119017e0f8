# SPDX-License-Identifier: Apache-2.0
# What libmonkey offers: the functions of include/monkey, in the version MONKEY_2, which programs are linked with.
#
#   mk_public_symbols(MAP NAMES TEST)   writes the linker's version script MAP, and the public names to the file NAMES, in the
#   build; and to TEST those of libmonkey-test, which has the functions of monkey/test_client.h, too
set(MK_SYMBOLS ${CMAKE_CURRENT_LIST_FILE})

function(mk_public_symbols map names test)
  file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/monkey/*.h)
  add_custom_command(OUTPUT ${map} ${names} ${test}
    COMMAND ${CMAKE_COMMAND} -DMAP=${map} -DNAMES=${names} -DTEST=${test} -DSOURCE=${CMAKE_SOURCE_DIR} -P ${MK_SYMBOLS}
    DEPENDS ${headers} ${MK_SYMBOLS}
    COMMENT "Listing what libmonkey offers"
    VERBATIM)
  add_custom_target(public_symbols DEPENDS ${map} ${names} ${test})
endfunction()

# Below: the same file as a script.
if(NOT CMAKE_SCRIPT_MODE_FILE)
  return()
endif()
file(GLOB headers ${SOURCE}/include/monkey/*.h)
set(found "")
set(of_test "")
foreach(header IN LISTS headers)
  file(READ ${header} text)
  string(REGEX REPLACE "\\[|\\]|;" "," text "${text}") # they mean something in lists
  # A declaration begins a line; its first name before a parenthesis is that of the function.
  string(REGEX MATCHALL "\nMK_API [^(]*mk_[a-z0-9_]+\\(" declarations "${text}")
  foreach(declaration IN LISTS declarations)
    string(REGEX MATCH "mk_[a-z0-9_]+\\($" name "${declaration}")
    string(REPLACE "(" "" name "${name}")
    if(header MATCHES "/test_client\\.h$")
      list(APPEND of_test ${name})
    else()
      list(APPEND found ${name})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES found)
list(SORT found)
list(JOIN found "\n" names)
list(JOIN found ";\n        " lines)
file(WRITE ${NAMES} "${names}\n")
list(APPEND of_test ${found})
list(SORT of_test)
list(JOIN of_test "\n" test_names)
file(WRITE ${TEST} "${test_names}\n")
file(WRITE ${MAP} "/* SPDX-License-Identifier: Apache-2.0 */
/* Made by cmake/symbols.cmake. */
MONKEY_2 {
    global:
        ${lines};
    local:
        *;
};
")
