// SPDX-License-Identifier: Apache-2.0

// Command server: TechEmpower's database tests, and a page with one Redis GET, with net/http, pgx and go-redis.
package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"html/template"
	"log"
	"math/rand"
	"net/http"
	"os"
	"sort"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"
)

const rowsInTable = 10000
const readRow = "SELECT id, randomnumber FROM world WHERE id = $1"
const writeRows = "UPDATE world SET randomnumber = new.number FROM (SELECT unnest($1::int[]) AS id, unnest($2::int[]) AS number ORDER BY 1) " +
	"AS new WHERE world.id = new.id"

type message struct {
	Message string `json:"message"`
}

type world struct {
	ID     int32 `json:"id"`
	Number int32 `json:"randomNumber"`
}

type fortune struct {
	ID      int32
	Message string
}

var binaryFormat = []int16{pgx.BinaryFormatCode, pgx.BinaryFormatCode}
var pool *pgxpool.Pool
var client *redis.Client
var cache = map[int32]world{}
var page = template.Must(template.New("fortunes").Parse("<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>" +
	"<tr><th>id</th><th>message</th></tr>{{range .}}<tr><td>{{.ID}}</td><td>{{.Message}}</td></tr>{{end}}</table></body></html>"))
var greeting = template.Must(template.New("page").Parse("<!DOCTYPE html><p>{{.}}</p>\n"))

func anyNumber() int32 {
	return 1 + rand.Int31n(rowsInTable)
}

func countAsked(r *http.Request, name string) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n < 1 {
		return 1
	}
	return min(n, 500)
}

func say(w http.ResponseWriter, kind string, text []byte) {
	w.Header().Set("Server", "Go")
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.Write(text)
}

func sayJSON(w http.ResponseWriter, value any, err error) {
	var text []byte
	if err == nil {
		text, err = json.Marshal(value)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	say(w, "application/json", text)
}

func sayHTML(w http.ResponseWriter, t *template.Template, value any, err error) {
	var text bytes.Buffer
	if err == nil {
		err = t.Execute(&text, value)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	say(w, "text/html; charset=utf-8", text.Bytes())
}

func readOne(ctx context.Context) (row world, err error) {
	err = pool.QueryRow(ctx, readRow, anyNumber()).Scan(&row.ID, &row.Number)
	return row, err
}

// Sends all queries at once with one Sync per query, as the benchmark requires; batches of pgx have one Sync for all.
func readRows(ctx context.Context, n int) ([]world, error) {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Release()
	if _, err := conn.Conn().Prepare(ctx, "read", readRow); err != nil {
		return nil, err
	}
	pipeline := conn.Conn().PgConn().StartPipeline(ctx)
	for i := 0; i < n; i++ {
		id := binary.BigEndian.AppendUint32(nil, uint32(anyNumber()))
		pipeline.SendQueryPrepared("read", [][]byte{id}, binaryFormat[:1], binaryFormat)
		pipeline.SendPipelineSync()
	}
	rows, err := takeRows(pipeline, n)
	return rows, errors.Join(err, pipeline.Close())
}

func takeRows(pipeline *pgconn.Pipeline, n int) ([]world, error) {
	rows := make([]world, 0, n)
	if err := pipeline.Flush(); err != nil {
		return nil, err
	}
	for len(rows) < n {
		results, err := pipeline.GetResults()
		if err != nil {
			return nil, err
		}
		reader, isReader := results.(*pgconn.ResultReader)
		for isReader && reader.NextRow() {
			row := reader.Values()
			rows = append(rows, world{int32(binary.BigEndian.Uint32(row[0])), int32(binary.BigEndian.Uint32(row[1]))})
		}
		if isReader {
			if _, err := reader.Close(); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

func db(w http.ResponseWriter, r *http.Request) {
	row, err := readOne(r.Context())
	sayJSON(w, row, err)
}

func queries(w http.ResponseWriter, r *http.Request) {
	rows, err := readRows(r.Context(), countAsked(r, "queries"))
	sayJSON(w, rows, err)
}

func fortunes(w http.ResponseWriter, r *http.Request) {
	all := make([]fortune, 0, 16)
	rows, err := pool.Query(r.Context(), "SELECT id, message FROM fortune")
	if err == nil {
		for rows.Next() {
			var f fortune
			rows.Scan(&f.ID, &f.Message)
			all = append(all, f)
		}
		err = rows.Err()
	}
	all = append(all, fortune{0, "Additional fortune added at request time."})
	sort.Slice(all, func(i, j int) bool { return all[i].Message < all[j].Message })
	sayHTML(w, page, all, err)
}

func updates(w http.ResponseWriter, r *http.Request) {
	rows, err := readRows(r.Context(), countAsked(r, "queries"))
	sort.Slice(rows, func(i, j int) bool { return rows[i].ID < rows[j].ID })
	ids, numbers := make([]int32, 0, len(rows)), make([]int32, 0, len(rows))
	for i := range rows {
		rows[i].Number = anyNumber()
		if i+1 == len(rows) || rows[i].ID != rows[i+1].ID { // if a row occurs twice, the last one counts
			ids, numbers = append(ids, rows[i].ID), append(numbers, rows[i].Number)
		}
	}
	if err == nil {
		_, err = pool.Exec(r.Context(), writeRows, ids, numbers)
	}
	sayJSON(w, rows, err)
}

func cached(w http.ResponseWriter, r *http.Request) {
	rows := make([]world, countAsked(r, "count"))
	for i := range rows {
		rows[i] = cache[anyNumber()]
	}
	sayJSON(w, rows, nil)
}

func showMessage(w http.ResponseWriter, r *http.Request) {
	text, err := client.Get(r.Context(), "message").Result()
	sayHTML(w, greeting, text, err)
}

func fill() error {
	rows, err := pool.Query(context.Background(), "SELECT id, randomnumber FROM world")
	if err != nil {
		return err
	}
	for rows.Next() {
		var row world
		if err := rows.Scan(&row.ID, &row.Number); err != nil {
			return err
		}
		cache[row.ID] = row
	}
	return rows.Err()
}

// server PORT POSTGRES-FOLDER REDIS-SOCKET
func main() {
	var err error
	pool, err = pgxpool.New(context.Background(), "host="+os.Args[2]+" user=contest dbname=postgres pool_max_conns=16 pool_min_conns=16")
	if err == nil {
		err = fill()
	}
	if err != nil {
		log.Fatal(err)
	}
	if len(os.Args) > 3 {
		client = redis.NewClient(&redis.Options{Network: "unix", Addr: os.Args[3]})
	}
	http.HandleFunc("/json", func(w http.ResponseWriter, r *http.Request) { sayJSON(w, message{"Hello, World!"}, nil) })
	http.HandleFunc("/plaintext", func(w http.ResponseWriter, r *http.Request) { say(w, "text/plain", []byte("Hello, World!")) })
	http.HandleFunc("/db", db)
	http.HandleFunc("/queries", queries)
	http.HandleFunc("/fortunes", fortunes)
	http.HandleFunc("/updates", updates)
	http.HandleFunc("/cached-queries", cached)
	http.HandleFunc("/page", showMessage)
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
