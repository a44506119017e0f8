INSERT INTO goods (id, name, price, stock) VALUES
    (1, 'Lamp', 2490, 100), (2, 'Chair', 7900, 20), (3, 'Tea pot', 1850, 40), (4, 'Painting of 1 monkey', 120000, 1);
