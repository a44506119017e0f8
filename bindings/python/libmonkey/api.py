# SPDX-License-Identifier: Apache-2.0
"""ctypes declarations of the libmonkey.so.1 functions that the binding calls: see <monkey/server.h> and related headers."""
from __future__ import annotations

import ctypes
import os
import socket
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_int, c_int64, c_size_t, c_ssize_t, c_uint, c_uint8, c_uint16,
                    c_uint32, c_uint64, c_void_p)
from typing import Any

NEXT, DONE, WAIT, REFUSE = range(1, 5)  # enum mk_verdict
LENGTH_UNKNOWN = -1
UINT, INT = 2, 3  # enum mk_router_type


class Str(Structure):
    """struct mk_str"""
    _fields_ = [("p", c_void_p), ("len", c_size_t)]

    def bytes(self) -> bytes | None:
        """Returns a copy, or None if the string is absent."""
        return ctypes.string_at(self.p, self.len) if self.p else None

    def text(self) -> str | None:
        """Returns a copy; invalid UTF-8 becomes lone surrogates, as in file names."""
        copy = self.bytes()
        return copy if copy is None else copy.decode("utf-8", "surrogateescape")


def as_bytes(value: Any) -> bytes:
    """Converts str or bytes to bytes. Anything else raises TypeError, because bytes(5) would be five NULs."""
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"expected text or bytes, not {type(value).__name__}")


def as_str(text: Any) -> tuple[Str, bytes]:
    """Returns a Str and the bytes that the Str points to. Keep a reference to the bytes while the Str is in use."""
    data = as_bytes(text)
    return Str(ctypes.cast(ctypes.c_char_p(data), c_void_p), len(data)), data


def as_c(text: Any) -> bytes:
    """Converts str or bytes for a `const char *`; rejects NULs, which would truncate it."""
    data = as_bytes(text)
    if b"\0" in data:
        raise ValueError("the text contains a NUL")
    return data


Handler = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p)
Log = CFUNCTYPE(None, c_void_p, c_int, Str)
Read = CFUNCTYPE(c_ssize_t, c_void_p, c_void_p, c_size_t)
Close = CFUNCTYPE(None, c_void_p)


class Addr(Structure):
    """struct mk_addr"""
    _fields_ = [("ip", c_uint8 * 16), ("port", c_uint16), ("is_unix", c_uint8)]

    def text(self) -> str:
        """Returns the address without its port, as Request.peer does."""
        ip = bytes(self.ip)
        if self.is_unix:
            return "unix:"
        if ip[:12] == bytes(10) + b"\xff\xff":
            return socket.inet_ntop(socket.AF_INET, ip[12:])
        return socket.inet_ntop(socket.AF_INET6, ip)


Accepts = CFUNCTYPE(c_bool, POINTER(Addr), c_void_p)


class Options(Structure):
    """struct mk_server_options"""
    _fields_ = [("size", c_size_t), ("on_log", Log), ("log_ctx", c_void_p), ("in_memory", c_bool),
                ("plugin_folder", c_char_p)]


class Param(Structure):
    """struct mk_router_param, with only the signed member of its union"""
    _fields_ = [("name", Str), ("value", Str), ("type", c_int), ("as_int", c_int64)]


class MemoryFile(Structure):
    """struct mk_memory_file"""
    _fields_ = [("path", c_char_p), ("content", Str), ("gzip", Str), ("br", Str), ("type", c_char_p), ("modified", c_int64)]


class SourceOps(Structure):
    """struct mk_body_source_ops"""
    _fields_ = [("read", Read), ("close", Close), ("reserved", c_uint64 * 2)]


WebSocketMessage = CFUNCTYPE(None, c_void_p, c_void_p, c_int, Str)
WebSocketWritable = CFUNCTYPE(None, c_void_p, c_void_p)
WebSocketPong = CFUNCTYPE(None, c_void_p, c_void_p, Str)
WebSocketClose = CFUNCTYPE(None, c_void_p, c_void_p, c_uint, Str)


class WebSocketOps(Structure):
    """struct mk_websocket_ops"""
    _fields_ = [("on_message", WebSocketMessage), ("on_writable", WebSocketWritable), ("on_pong", WebSocketPong),
                ("on_close", WebSocketClose), ("reserved", c_uint64 * 4)]


class WebSocketOptions(Structure):
    """struct mk_websocket_options"""
    _fields_ = [("ops", POINTER(WebSocketOps)), ("subprotocols", c_char_p), ("origins", c_char_p),
                ("message_max", c_size_t), ("frame_max", c_size_t), ("queue_max", c_size_t), ("ping_ms", c_uint32),
                ("close_ms", c_uint32), ("flags", c_uint), ("compress_min", c_size_t), ("reserved", c_uint64 * 6)]


MAJOR_VERSION = 2  # releases of this major version have all functions below, with the same meaning

DECLARATIONS: dict[str, tuple[Any, ...]] = {
    "mk_version": (c_char_p,),
    "mk_server_new": (c_void_p, POINTER(Options)),
    "mk_server_error": (c_char_p, c_void_p),
    "mk_server_load_config": (c_int, c_void_p, c_char_p),
    "mk_server_set": (c_int, c_void_p, c_char_p, c_char_p, c_char_p),
    "mk_server_add_section": (c_int, c_void_p, c_char_p),
    "mk_server_add_vhost": (c_int, c_void_p, c_char_p, c_char_p),
    "mk_server_set_default_type": (c_int, c_void_p, c_char_p),
    "mk_server_add_route": (c_int, c_void_p, c_char_p, Handler, c_void_p),
    "mk_server_listen": (c_int, c_void_p, c_char_p, POINTER(c_uint)),
    "mk_server_listen_fd": (c_int, c_void_p, c_int, c_bool),
    "mk_server_unlisten": (c_int, c_void_p, c_char_p),
    "mk_server_address": (c_int, c_void_p, c_size_t, c_char_p, c_size_t),
    "mk_server_listener_fd": (c_int, c_void_p, c_size_t, c_size_t),
    "mk_server_add_certificate": (c_int, c_void_p, c_char_p, c_char_p),
    "mk_server_replace_certificate": (c_int, c_void_p, c_char_p, c_char_p, c_char_p),
    "mk_server_add_files": (c_int, c_void_p, POINTER(MemoryFile), c_size_t, c_size_t),
    "mk_server_set_accept_filter": (c_int, c_void_p, Accepts, c_void_p),
    "mk_server_pause_accepting": (c_int, c_void_p),
    "mk_server_resume_accepting": (c_int, c_void_p),
    "mk_server_start": (c_int, c_void_p, c_uint),
    "mk_server_fd": (c_int, c_void_p),
    "mk_server_step": (c_int, c_void_p),
    "mk_server_stop": (None, c_void_p, c_uint32),
    "mk_server_wait": (c_int, c_void_p),
    "mk_server_free": (None, c_void_p),
    "mk_request_method_name": (Str, c_void_p),
    "mk_request_target": (Str, c_void_p),
    "mk_request_path": (Str, c_void_p),
    "mk_request_query": (Str, c_void_p),
    "mk_request_host": (Str, c_void_p),
    "mk_request_scheme": (Str, c_void_p),
    "mk_request_client_text": (Str, c_void_p),
    "mk_request_header": (Str, c_void_p, Str),
    "mk_request_header_at": (c_bool, c_void_p, c_size_t, POINTER(Str), POINTER(Str)),
    "mk_server_param": (POINTER(Param), c_void_p, c_char_p),
    "mk_request_version": (c_uint, c_void_p),
    "mk_request_cookie_view": (Str, c_void_p, c_char_p),
    "mk_request_trailer_at": (c_bool, c_void_p, c_size_t, POINTER(Str), POINTER(Str)),
    "mk_request_read": (c_ssize_t, c_void_p, c_void_p, c_size_t),
    "mk_request_resume": (None, c_void_p),
    "mk_request_set_handler_timeout": (c_int, c_void_p, c_uint32),
    "mk_request_ref_new": (c_void_p, c_void_p),
    "mk_request_ref_resume": (c_int, c_void_p, c_void_p, c_void_p),
    "mk_request_ref_is_gone": (c_bool, c_void_p),
    "mk_request_ref_free": (None, c_void_p),
    "mk_request_cancel_on_disconnect": (None, c_void_p),
    "mk_request_add_cleanup": (c_int, c_void_p, Close, c_void_p),
    "mk_websocket_open": (c_int, c_void_p, c_void_p, POINTER(WebSocketOptions), c_void_p, POINTER(c_void_p)),
    "mk_websocket_send": (c_int, c_void_p, c_int, Str),
    "mk_websocket_close": (c_int, c_void_p, c_uint, Str),
    "mk_websocket_ping": (c_int, c_void_p, Str),
    "mk_websocket_abort": (None, c_void_p),
    "mk_websocket_subprotocol": (Str, c_void_p),
    "mk_websocket_pause": (None, c_void_p),
    "mk_websocket_resume": (None, c_void_p),
    "mk_response_set_status": (c_int, c_void_p, c_uint),
    "mk_response_add_header": (c_int, c_void_p, Str, Str),
    "mk_response_set_header": (c_int, c_void_p, Str, Str),
    "mk_response_remove_header": (c_int, c_void_p, Str),
    "mk_response_add_trailer": (c_int, c_void_p, Str, Str),
    "mk_response_set_body": (c_int, c_void_p, Str),
    "mk_response_set_body_file": (c_int, c_void_p, c_int, ctypes.c_uint64, ctypes.c_uint64),
    "mk_response_set_body_source": (c_int, c_void_p, POINTER(SourceOps), c_void_p, c_int64),
}


HELP = """libmonkey: cannot load the library of the Monkey HTTP server ({file}): {problem}
The wheels from the package index contain it. This package was installed without it: install Monkey (`make release`, then
`sudo make install` and `sudo ldconfig` in its source tree), or set the environment variable LIBMONKEY to the path of the
library, such as LIBMONKEY=/usr/local/lib/libmonkey.so.1."""


def find_library() -> str:
    """Returns the library to load: $LIBMONKEY, the file in this package, or the installed library."""
    bundled = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libmonkey.so.1")
    return os.environ.get("LIBMONKEY") or (bundled if os.path.exists(bundled) else "libmonkey.so.1")


def load() -> Any:
    """Loads the library and declares its functions. Raises ImportError if it is missing or has another major version."""
    file = find_library()
    try:
        library = ctypes.CDLL(file)
    except OSError as problem:
        raise ImportError(HELP.format(file=file, problem=problem)) from None
    for name, (result, *arguments) in DECLARATIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{file} is not libmonkey, or too old: it has no {name}()") from None
        function.restype, function.argtypes = result, arguments
        if name == "mk_version":
            check_version(file, function().decode())
    return library


def check_version(file: str, version: str) -> None:
    if int(version.split(".")[0]) != MAJOR_VERSION:
        raise ImportError(f"{file} has version {version}, but this package needs {MAJOR_VERSION}.x")


lib = load()
