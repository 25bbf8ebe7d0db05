SELECT city, count(DISTINCT customer) AS customers, avg(amount) AS mean_amount
FROM orders
JOIN customers ON customers.id = orders.customer
GROUP BY city
ORDER BY city;
