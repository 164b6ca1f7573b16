"""A server as a careful user writes it: sentence-transformers behind FastAPI, one worker thread, the model warm."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fastapi
import sentence_transformers
import uvicorn


def make_app(folder: str) -> fastapi.FastAPI:
    """Return an app with `POST /v1/embeddings` and `GET /health`."""
    model = sentence_transformers.SentenceTransformer(folder, device="cpu")
    model.encode(["a first text"] * 8)
    app, worker = fastapi.FastAPI(), ThreadPoolExecutor(1)  # two threads would only share the cores of one product

    @app.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ready"}

    @app.post("/v1/embeddings")
    async def embed(request: fastapi.Request) -> dict[str, Any]:
        texts = (await request.json())["input"]
        texts = [texts] if isinstance(texts, str) else texts
        vectors = await asyncio.get_running_loop().run_in_executor(worker, model.encode, texts)
        return {"data": [{"index": n, "embedding": vector.tolist()} for n, vector in enumerate(vectors)]}

    return app


def serve(folder: str, port: int) -> None:
    """Serve a sentence model until a signal."""
    uvicorn.run(make_app(folder), port=port, log_level="error")
