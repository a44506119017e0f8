// SPDX-License-Identifier: Apache-2.0

// The service of arena.c with fasthttp: arena PORT DATASET
package main

import (
	"encoding/json"
	"log"
	"os"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"
)

type rating struct {
	Score int `json:"score"`
	Count int `json:"count"`
}

type item struct {
	ID       int      `json:"id"`
	Name     string   `json:"name"`
	Category string   `json:"category"`
	Price    int      `json:"price"`
	Quantity int      `json:"quantity"`
	Active   bool     `json:"active"`
	Tags     []string `json:"tags"`
	Rating   rating   `json:"rating"`
	Total    int      `json:"total"`
}

type page struct {
	Items []item `json:"items"`
	Count int    `json:"count"`
}

func sendItems(ctx *fasthttp.RequestCtx, dataset []item) {
	count, err := strconv.Atoi(strings.TrimPrefix(string(ctx.Path()), "/json/"))
	if err != nil || count < 0 {
		ctx.SetStatusCode(400)
		return
	}
	if count > len(dataset) {
		count = len(dataset)
	}
	m, err := ctx.QueryArgs().GetUint("m")
	if err != nil {
		m = 1
	}
	items := make([]item, count)
	copy(items, dataset)
	for i := range items {
		items[i].Total = items[i].Price * items[i].Quantity * m
	}
	body, _ := json.Marshal(page{items, count})
	ctx.SetContentType("application/json")
	ctx.SetBody(body)
}

func sendSum(ctx *fasthttp.RequestCtx) {
	args := ctx.QueryArgs()
	ctx.SetContentType("text/plain")
	ctx.SetBodyString(strconv.Itoa(args.GetUintOrZero("a") + args.GetUintOrZero("b")))
}

func main() {
	var dataset []item
	data, err := os.ReadFile(os.Args[2])
	if err == nil {
		err = json.Unmarshal(data, &dataset)
	}
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(fasthttp.ListenAndServe("127.0.0.1:"+os.Args[1], func(ctx *fasthttp.RequestCtx) {
		switch {
		case strings.HasPrefix(string(ctx.Path()), "/json/"):
			sendItems(ctx, dataset)
		case string(ctx.Path()) == "/baseline11":
			sendSum(ctx)
		default:
			ctx.SetStatusCode(404)
		}
	}))
}
