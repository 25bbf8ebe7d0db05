SELECT name, sum(amount) AS total
FROM orders
JOIN customers ON customers.id = orders.customer
GROUP BY name
ORDER BY total DESC;
