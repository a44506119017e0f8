# SPDX-License-Identifier: Apache-2.0
# TLS is an object of its own, monkey-tls.so: OpenSSL makes a process dirty 470 KB of memory, so only a server with TLS loads it
# (docs/decisions/0014-tls-shared-object.md). With `tls` or `all` in MK_PLUGINS_STATIC it is a part of the program.
#
#   mk_tls_layer()   the layer src/tls and the object; neither without OpenSSL 3
set(MK_TLS AUTO CACHE STRING "TLS by OpenSSL 3: ON, OFF, or AUTO if it is there")
mk_forget_missing(OPENSSL_INCLUDE_DIR OPENSSL_CRYPTO_LIBRARY OPENSSL_SSL_LIBRARY)
if(NOT MK_LIBRARIES)
  set(MK_TLS OFF)
elseif(MK_TLS STREQUAL "AUTO")
  find_package(OpenSSL 3.0 QUIET)
elseif(MK_TLS)
  find_package(OpenSSL 3.0 REQUIRED)
endif()

function(mk_tls_layer)
  if(NOT TARGET OpenSSL::SSL)
    mk_feature(FALSE TLS "OpenSSL 3")
    message(STATUS "TLS: left out, OpenSSL 3 is not there or not wanted")
    file(REMOVE ${CMAKE_BINARY_DIR}/plugins/monkey-tls.so) # of an earlier configure
    return()
  endif()
  mk_feature(TRUE TLS)
  mk_layer(tls event)
  target_link_libraries(mk_tls PUBLIC OpenSSL::SSL)
  add_library(object_tls MODULE $<TARGET_OBJECTS:mk_tls>)
  set_target_properties(object_tls PROPERTIES PREFIX "" OUTPUT_NAME monkey-tls SUFFIX .so LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_link_libraries(object_tls PRIVATE mk_flags OpenSSL::SSL)
  set_property(GLOBAL APPEND PROPERTY MK_OBJECTS object_tls)
  install(TARGETS object_tls LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
endfunction()
