// SPDX-License-Identifier: Apache-2.0

// A libmonkey server with a handler in Go. The handler is an exported function, so that C can call it. The server runs
// in threads of the library; the main goroutine waits for a signal.
package main

/*
#cgo pkg-config: libmonkey
#include <monkey/server.h>
#include <stdlib.h>

enum mk_verdict hello(struct mk_request *request, struct mk_response *response, void *data);
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"unsafe"
)

// text returns a copy of a string of the library.
func text(s C.mk_str) string {
	return C.GoStringN(s.p, C.int(s.len))
}

//export hello
func hello(request *C.struct_mk_request, response *C.struct_mk_response, _ unsafe.Pointer) C.enum_mk_verdict {
	answer := fmt.Sprintf("hello from Go, %s\n", text(C.mk_request_path(request)))
	content := C.CString(answer)
	defer C.free(unsafe.Pointer(content))
	C.mk_response_set_body(response, C.mk_str_from_c(content))
	return C.MK_DONE
}

func start(where string) (*C.struct_mk_server, C.uint) {
	var port C.uint
	route, address := C.CString("GET /hello/:name"), C.CString(where)
	defer C.free(unsafe.Pointer(route))
	defer C.free(unsafe.Pointer(address))
	server := C.mk_server_new(nil)
	if C.mk_server_add_route(server, route, (*C.mk_server_fn)(C.hello), nil) != 0 ||
		C.mk_server_listen(server, address, &port) != 0 || C.mk_server_start(server, 2) != 0 {
		fmt.Fprintln(os.Stderr, C.GoString(C.mk_server_error(server)))
		os.Exit(1)
	}
	return server, port
}

func main() {
	where := "127.0.0.1:2001"
	if len(os.Args) > 1 {
		where = os.Args[1]
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	server, port := start(where)
	fmt.Printf("http://127.0.0.1:%d/hello/world\n", port)
	<-stop
	C.mk_server_stop(server, 5000)
	C.mk_server_wait(server)
	C.mk_server_free(server)
}
