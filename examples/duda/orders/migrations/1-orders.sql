CREATE TABLE orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    goods text NOT NULL CHECK (goods <> ''),
    pieces integer NOT NULL CHECK (pieces > 0)
);

CREATE FUNCTION notify_of_order() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('orders', NEW.pieces || ' x ' || left(NEW.goods, 100));
    RETURN NULL;
END $$;

CREATE TRIGGER orders_news AFTER INSERT ON orders FOR EACH ROW EXECUTE FUNCTION notify_of_order();
