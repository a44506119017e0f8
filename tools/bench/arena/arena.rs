// SPDX-License-Identifier: Apache-2.0
// The service of arena.c with actix-web: arena PORT DATASET
use actix_web::{web, App, HttpResponse, HttpServer, Responder};
use serde::{Deserialize, Serialize};

#[derive(Deserialize, Serialize, Clone)]
struct Rating {
    score: i64,
    count: i64,
}

#[derive(Deserialize, Serialize, Clone)]
struct Item {
    id: i64,
    name: String,
    category: String,
    price: i64,
    quantity: i64,
    active: bool,
    tags: Vec<String>,
    rating: Rating,
    #[serde(default)]
    total: i64,
}

#[derive(Serialize)]
struct Page<'a> {
    items: Vec<View<'a>>,
    count: usize,
}

// Borrows the strings of an item, so that a response copies each string once.
#[derive(Serialize)]
struct View<'a> {
    id: i64,
    name: &'a str,
    category: &'a str,
    price: i64,
    quantity: i64,
    active: bool,
    tags: &'a [String],
    rating: &'a Rating,
    total: i64,
}

#[derive(Deserialize)]
struct Factor {
    m: Option<i64>,
}

#[derive(Deserialize)]
struct Sum {
    a: Option<i64>,
    b: Option<i64>,
}

async fn send_items(dataset: web::Data<Vec<Item>>, count: web::Path<usize>, query: web::Query<Factor>) -> impl Responder {
    let m = query.m.unwrap_or(1);
    let items: Vec<View> = dataset
        .iter()
        .take(count.into_inner())
        .map(|i| View {
            id: i.id,
            name: &i.name,
            category: &i.category,
            price: i.price,
            quantity: i.quantity,
            active: i.active,
            tags: &i.tags,
            rating: &i.rating,
            total: i.price * i.quantity * m,
        })
        .collect();
    let count = items.len();
    HttpResponse::Ok().json(Page { items, count })
}

async fn send_sum(query: web::Query<Sum>) -> impl Responder {
    let sum = query.a.unwrap_or(0) + query.b.unwrap_or(0);
    HttpResponse::Ok().content_type("text/plain").body(sum.to_string())
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let port: u16 = arguments[1].parse().expect("a port");
    let items: Vec<Item> = serde_json::from_str(&std::fs::read_to_string(&arguments[2])?)?;
    let dataset = web::Data::new(items);
    HttpServer::new(move || {
        App::new()
            .app_data(dataset.clone())
            .route("/json/{count}", web::get().to(send_items))
            .route("/baseline11", web::get().to(send_sum))
    })
    .workers(1)
    .bind(("127.0.0.1", port))?
    .run()
    .await
}
