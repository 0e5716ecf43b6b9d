// biome-ignore-all lint/correctness/noUndeclaredVariables: the bundle before this script defines it
window.ui = SwaggerUIBundle({
  url: '/docs/swagger.json',
  dom_id: '#ui',
  deepLinking: true,
  validatorUrl: null,
  displayRequestDuration: true,
  defaultModelsExpandDepth: 0,
})
