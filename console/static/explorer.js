// The API explorer: Swagger UI on our own document. A key typed in stays in this page's memory.
SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  showExtensions: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
