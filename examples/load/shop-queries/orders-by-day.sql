SELECT day, count(*) AS orders, sum(amount) AS total
FROM orders
GROUP BY day
ORDER BY day;
