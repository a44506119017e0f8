// SPDX-License-Identifier: Apache-2.0

// Command server: files, a greeting, and typical web service responses, with only Go's standard library.
package main

import (
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type message struct {
	Message string `json:"message"`
}

func say(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Write([]byte(text))
	}
}

func sayJSON(w http.ResponseWriter, r *http.Request) {
	text, err := json.Marshal(message{"Hello, World!"})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(text)
}

// server ADDRESS ROOT PATH-OF-GREETING GREETING
func main() {
	address, root, path, greeting := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	http.HandleFunc(path, say(greeting))
	http.HandleFunc("/json", sayJSON)
	http.HandleFunc("/plaintext", say("Hello, World!"))
	http.Handle("/", http.FileServer(http.Dir(root)))
	log.Fatal(http.ListenAndServe(address, nil))
}
