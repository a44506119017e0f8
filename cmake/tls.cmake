# SPDX-License-Identifier: Apache-2.0
# TLS by OpenSSL 3: src/tls, the one object that knows it. It is loaded when a configuration wants TLS, so that who serves
# plain HTTP does not carry it; with `tls` or `all` in MK_STATIC_PLUGINS it becomes a part of the program.
set(MK_TLS AUTO CACHE STRING "TLS by OpenSSL 3: ON, OFF, or AUTO if it is there")
mk_forget_missing(OPENSSL_INCLUDE_DIR OPENSSL_CRYPTO_LIBRARY OPENSSL_SSL_LIBRARY)
if(NOT MK_LIBRARIES)
  set(MK_TLS OFF)
elseif(MK_TLS STREQUAL "AUTO")
  find_package(OpenSSL 3.0 QUIET)
  if(NOT OpenSSL_FOUND)
    message(STATUS "TLS: left out, OpenSSL 3 is not there")
  endif()
elseif(MK_TLS)
  find_package(OpenSSL 3.0 REQUIRED)
endif()

# mk_tls(): the layer `tls` and the object that is made of it.
function(mk_tls)
  if(NOT MK_TLS OR NOT OpenSSL_FOUND)
    mk_feature(FALSE TLS "OpenSSL 3")
    file(REMOVE ${CMAKE_BINARY_DIR}/plugins/monkey-tls.so) # of an earlier configure
    return()
  endif()
  mk_feature(TRUE TLS)
  mk_layer(tls net)
  mk_hot(tls bio out stream)
  target_link_libraries(mk_tls PUBLIC OpenSSL::SSL)
  add_library(object_tls MODULE $<TARGET_OBJECTS:mk_tls>)
  set_target_properties(object_tls PROPERTIES PREFIX "" OUTPUT_NAME monkey-tls SUFFIX .so LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/plugins)
  target_link_libraries(object_tls PRIVATE mk_flags OpenSSL::SSL)
  set_property(GLOBAL APPEND PROPERTY MK_OBJECTS object_tls)
  install(TARGETS object_tls LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/monkey)
endfunction()

# mk_program_with_tls(TARGET): has it built in.
function(mk_program_with_tls target)
  if(TARGET mk_tls)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:mk_tls>)
    target_link_libraries(${target} PRIVATE OpenSSL::SSL)
  endif()
endfunction()
